-- A realistic screening call, about 2 KB, for wrk: `wrk -s sim_load.lua URL -- PIPELINE`.
-- PIPELINE requests (1 by default) are sent at a time on each connection.
-- The paper shares no word with the question, so the simulator has to read all of it.
local system_text = "You are screening papers for a literature review. Judge only from title " ..
   "and abstract. Answer with one JSON object and nothing else: {\\\"relevant\\\": true or " ..
   "false, \\\"reason\\\": \\\"at most 200 characters\\\"}. A paper is relevant if it helps to " ..
   "answer the question, directly or by its method.\\n\\nQuestion: What perovskite " ..
   "photovoltaic absorbers remain stable beyond thousand hours in humid air?"

local abstract = "Background. Deep convolutional networks have become the standard tool for " ..
   "reading medical images, yet most studies report results from one hospital and one scanner " ..
   "only. We asked how far such results carry over. Methods. We collected 48,211 chest " ..
   "radiographs from eleven hospitals in four countries, trained twelve networks of three " ..
   "families on each site, and tested every one of them on all others. Readers were twenty-six " ..
   "radiologists with two to thirty years of practice, who saw a random sample of 1,200 images " ..
   "without clinical notes. Results. Area under the curve fell from 0.94 (95% CI " ..
   "0.93\\u20130.95) within a site to 0.81 (0.78\\u20130.84) across sites; the fall was larger " ..
   "for small findings and for portable devices, and was not explained by image size, age or " ..
   "sex of the patients. Training on four or more sites recovered nine tenths of the loss. " ..
   "Readers did not change between sites. Conclusions. Reports from a single hospital say " ..
   "little about use elsewhere; mixing several sources of training data does more than a " ..
   "larger network. Code, splits and all predictions are public. Trial registration: " ..
   "NCT01234567. Funding: national research council and two charities, none of which took part " ..
   "in design, analysis, or writing of this report."

local user_text = "Title: How far do chest radiograph classifiers travel? " ..
   "A study of eleven hospitals\\n" ..
   "Authors: M. Okafor, L. Lindqvist, J. Tanaka\\nJournal: Annals of Imaging\\nYear: 2023\\n" ..
   "DOI: 10.1000/annimg.2023.0417\\nAbstract: " .. abstract

local body = '{"model": "gpt-4o-mini", "temperature": 0, "max_tokens": 200, ' ..
   '"response_format": {"type": "json_object"}, ' ..
   '"messages": [{"role": "system", "content": "' .. system_text .. '"}, ' ..
   '{"role": "user", "content": "' .. user_text .. '"}]}'

local requests

function init(args)
   wrk.headers["Authorization"] = "Bearer bench"
   wrk.headers["Content-Type"] = "application/json"
   local one = wrk.format("POST", "/v1/chat/completions", nil, body)
   requests = string.rep(one, tonumber(args[1] or 1))
end

function request()
   return requests
end
