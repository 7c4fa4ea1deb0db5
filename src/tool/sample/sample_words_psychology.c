#include "tool/sample/sample_words.h"

static const struct sample_topic topics[] = {
    {"教育心理学",
     SAMPLE_LIST("reading comprehension in primary school", "mathematics anxiety",
                 "feedback in online courses", "self-regulated learning", "bilingual classrooms",
                 "teacher burnout"),
     SAMPLE_LIST("retrieval practice", "growth mindset messages", "peer tutoring",
                 "working memory load", "classroom noise", "formative assessment"),
     SAMPLE_LIST("delayed test performance", "academic motivation", "dropout intentions",
                 "transfer of learning", "achievement gaps", "help-seeking")},
    {"临床心理学",
     SAMPLE_LIST("adolescent depression", "post-traumatic stress disorder", "generalised anxiety",
                 "insomnia in shift workers", "eating disorders", "postpartum distress"),
     SAMPLE_LIST("internet-delivered cognitive therapy", "rumination", "mindfulness training",
                 "social media use", "childhood adversity", "therapist alliance"),
     SAMPLE_LIST("symptom severity", "relapse", "treatment adherence", "daily functioning",
                 "suicidal ideation", "sleep quality")},
    {"社会心理学",
     SAMPLE_LIST("intergroup contact", "misinformation sharing", "collective action",
                 "loneliness in later life", "moral judgement", "vaccine hesitancy"),
     SAMPLE_LIST("perceived norms", "accuracy prompts", "group identification",
                 "economic inequality", "emotional framing", "perspective taking"),
     SAMPLE_LIST("prejudice reduction", "institutional trust", "prosocial behaviour",
                 "belief updating", "political polarisation", "life satisfaction")},
};

const struct sample_field sample_psychology = {
    .tag = "心理学与教育",
    .topics = topics,
    .topic_count = sizeof topics / sizeof *topics,
    .methods = SAMPLE_LIST("multilevel growth models", "experience sampling",
                           "a preregistered online experiment", "network analysis",
                           "a three-wave longitudinal design", "latent profile analysis",
                           "a meta-analytic review", "thematic analysis of interviews"),
    .materials =
        SAMPLE_LIST("undergraduates from four universities", "pupils in rural and urban schools",
                    "a quota sample of adults", "patients on a waiting list",
                    "dyads recruited by newspaper", "teachers in their first years of service"),
};
