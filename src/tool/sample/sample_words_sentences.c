#include "tool/sample/sample_words.h"

/* Slots: @S subject, @F @G factors, @O @P outcomes, @M @N methods, @D material, @n a count, @p a
 * percentage, @r a ratio, @i one with its interval, @t a p-value, @y a few years. Sentences avoid
 * verbs that would have to agree with a slot. */

static const char *const titles[] = {"Effect of @F on @O in @S",
                                     "@F and @O in @S: evidence from @D",
                                     "Role of @F in @S: a study using @M",
                                     "Revisiting @S: @F, @G and @O",
                                     "Linking @F to @O in @S",
                                     "How much can @F change @O? Insights from research on @S",
                                     "Predicting @O in @S with @M",
                                     "Towards better @O in @S: the case of @F",
                                     "A @y-year view of @S: @O and @F",
                                     "@O, @P and @F: what we know about @S",
                                     "Limits of @F in @S",
                                     "@F versus @G in @S: a comparison of @O",
                                     NULL};

static const char *const openings[] = {
    "Interest in @S has grown steadily over the past decade, yet the contribution of @F to @O is "
    "still poorly understood.",
    "The relation between @F and @O remains one of the open questions in work on @S.",
    "Progress in @S depends on a clear picture of @O, but earlier reports disagree on the part "
    "that @F plays in it.",
    "Although the role of @F has been discussed widely in the context of @S, direct evidence for a "
    "change in @O has been scarce.",
    "Few studies of @S have looked at @F and @G together, and fewer still have followed @O over "
    "longer periods.",
    "Decisions about @S often rest on assumptions about @O that have not been tested against "
    "independent data.",
    "In the field of @S, improvements in @O are frequently bought at the expense of @P, a "
    "trade-off that deserves closer attention.",
    "Recent advances have brought @S to wider attention, while the limits set by @F have received "
    "much less of it.",
    "Reliable estimates of @O are needed in work on @S, and current figures vary by more than a "
    "factor of two.",
    "What drives @O in @S is debated, with @F and @G named most often as candidates.",
    NULL};

static const char *const aims[] = {
    "Here we examine the effect of @F on @O, and the conditions under which it persists.",
    "This study sets out to separate the influence of @F from that of @G on @O.",
    "We asked how strong the link between @F and @O is, and whether the same pattern holds for @P.",
    "Our aim was to quantify the effect of @F on @O and to identify where it fails.",
    "The present work reports a systematic investigation of @F in the setting of @S.",
    "We therefore compared @F with @G and recorded both @O and @P throughout.",
    "To close this gap, we combine @M with a detailed record of @O.",
    NULL};

static const char *const methods[] = {
    "Data came from @D, with a total of @n observations collected over @y years.",
    "Using @M, we analysed @n cases and adjusted for the most common sources of bias.",
    "The analysis was based on @D and relied on @M, supplemented by @N.",
    "We applied @M to @D and repeated every step with an independent second team.",
    "All measurements were carried out in triplicate, and we used @N to verify the main findings.",
    "A subset of @n samples was set aside in advance to test the predictions obtained with @M.",
    "We relied on @M; sensitivity was checked by @N and by leaving out one group at a time.",
    "The protocol was fixed before any data were seen, and @n records from @D met the criteria.",
    NULL};

static const char *const results[] = {
    "On average, the groups with and without @F differed by @p in @O, clearly more than expected "
    "by chance (@t).",
    "The effect was strongest in the presence of @G, reaching @p after @y years.",
    "In contrast, @P showed no consistent trend, with estimates between @p and @p.",
    "A model that included @F explained @p of the variance in @O, against @p without it.",
    "The ratio after adjustment (@i) was clear enough, and it remained stable across all "
    "subgroups.",
    "Most of the gain in @O appeared early and levelled off beyond a moderate level of @F.",
    "Notably, @n of the observations departed from this pattern, mainly because of @G.",
    "We found that @P improved by @p, while @O stayed within the range reported before.",
    "Replacing @F by @G reduced the effect to @p, which points to a distinct mechanism.",
    "Results from @N agreed with the main analysis to within @p.",
    "The two groups differed clearly in @O (ratio @i), but not in @P.",
    "When @F and @G were combined, the changes in @O and @P were roughly additive.",
    "Variation between sites accounted for @p of the total, and repeated measurements for @p.",
    "For the smallest samples the uncertainty was large, and the sign of the effect on @P could "
    "not be settled.",
    "A dose-response relation between @F and @O was visible over the whole range (@t).",
    "Removing the most influential cases changed the estimate from @r to @r.",
    NULL};

static const char *const endings[] = {
    "These findings suggest that @F should be taken into account in further studies of @S.",
    "Taken together, the results identify @F as a practical lever for improving @O.",
    "We conclude that claims about @O need to be qualified by the level of @G.",
    "The approach can be carried over to related questions, and all data are available on request.",
    "Further work should clarify whether the link between @F and @O is causal.",
    "Our results caution against treating @O and @P as interchangeable in @S.",
    "The evidence supports a wider use of @F, provided that attention is paid to @P.",
    NULL};

const struct sample_sentences sample_english = {titles, openings, aims, methods, results, endings};

static const char *const titles_zh[] = {"@F对@S中@O的影响",
                                        "基于@M的@S@O研究",
                                        "@S的@O与@F：来自@D的证据",
                                        "@S研究：@F与@G的比较",
                                        "@F在@S中的作用机制",
                                        "@S@O的影响因素分析",
                                        NULL};

static const char *const openings_zh[] = {
    "近年来，@S受到广泛关注，但@F对@O的影响尚不明确。",
    "@S的发展依赖于对@O的准确认识，而已有研究对@F的作用结论不一。",
    "在@S领域，@O的提升往往以@P为代价，这一矛盾亟待深入研究。",
    "尽管@F常与@S联系在一起，关于@O变化的直接证据仍然有限。",
    "@O是评价@S的关键指标，@F与@G被认为是最主要的影响因素。",
    NULL};

static const char *const aims_zh[] = {
    "本文旨在定量评估@F对@O的作用，并探讨其适用条件。",
    "为此，本研究比较了@F与@G两种情形下@O和@P的差异。",
    "本研究的目的是厘清@F与@O之间的关系，并检验@P是否遵循相同规律。", NULL};

static const char *const methods_zh[] = {
    "数据来自@D，历时@y年，共纳入@n例观测。", "采用@M对@n个样本进行分析，并以@N验证主要结果。",
    "研究以@D为对象，结合@M与@N，对潜在偏倚进行了校正。",
    "所有测量均重复三次，并预留独立样本用于检验由@M得到的预测。", NULL};

static const char *const results_zh[] = {"结果表明，与对照组相比，@F使@O平均变化@p（@t）。",
                                         "当@G同时存在时，效应最为显著，@y年后达到@p。",
                                         "与之相反，@P未呈现一致趋势，估计值介于@p与@p之间。",
                                         "引入@F的模型可解释@O变异的@p，而未引入时仅为@p。",
                                         "校正后的比值为@r，且在各亚组中保持稳定。",
                                         "@O的改善主要出现在早期，@F超过中等水平后趋于平缓。",
                                         "以@G替代@F后，效应降至@p，提示二者机制不同。",
                                         "@F与@G联合作用时，@O与@P的变化大致可加。",
                                         "由@N得到的结果与主要分析的偏差不超过@p。",
                                         "站点之间的差异占总变异的@p，重复测量误差占@p。",
                                         NULL};

static const char *const endings_zh[] = {"上述结果说明，研究@S时应充分考虑@F的影响。",
                                         "综上，@F是改善@O的可行途径，但需同时关注@P。",
                                         "本研究可为@S的进一步研究与实践提供依据。", NULL};

const struct sample_sentences sample_chinese = {titles_zh,  openings_zh, aims_zh,
                                                methods_zh, results_zh,  endings_zh};
