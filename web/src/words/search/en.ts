/* The search: its form, what it finds, why hits may be missing, and a screening of the nearest. */
import type { SearchReason } from "@/app/hits/feed";
import type { Estimate } from "@/common/api";

type NearestReason = NonNullable<NonNullable<Estimate["nearest"]>["reason"]>;

const words = {
    title: "Search",
    field: "Question, or words",
    placeholder: "What are you looking for? A question, or words",
    go: "Search",
    kindLabel: "What is searched",
    kinds: { both: "Posts and papers", post: "Posts", paper: "Papers" },
    kind: { post: "Post", paper: "Paper" },
    filters: "Journals and years",
    filtersOn: "Journals and years ({n} set)",
    papersOnly: "Journals and years leave posts out: they have neither.",
    journals: "Journals",
    journalFind: "Find a journal by name",
    journalNone: "No journal matches",
    journalMore: "and {n} more: type a part of the name",
    journalMost: "At most {n} journals.",
    journalRemove: "Remove {name}",
    from: "From year",
    to: "To year",
    any: "any",
    clear: "Clear journals and years",
    intro: "Find posts and papers by what they are about",
    introHint:
        "Ask in your own words, in any language: texts that mean the same are found, also where " +
        "they say it in other words.",
    searching: "Searching…",
    found: "One hit | {n} hits",
    foundMore: "The first {n} hits",
    none: "Nothing was found",
    noneHint:
        "Try other words, or fewer filters. A post is found some seconds after it was written.",
    bare: "Nothing is indexed yet",
    extent: {
        among: " among {what}",
        searched: "Searched: {what}.",
        and: " and ",
        gap: " ",
        wayOut:
            "An administrator can have papers indexed: on the page “Search index”, or with the " +
            "command “millrace embed”.",
        post: {
            whole: "one post | {n} posts",
            nothing: "There are no posts yet.",
            none: "One post waits to be indexed. | {n} posts wait to be indexed.",
            some: "{n} of {total} posts are indexed; the others cannot be found yet.",
            words: "Posts are found by their words alone: none is indexed by meaning yet.",
            someMeaning:
                "{n} of {total} posts are found by meaning, the others by their words alone.",
        },
        paper: {
            whole: "one paper | {n} papers",
            nothing: "There are no such papers on this server.",
            none: "No paper is indexed yet, so none can be found.",
            noneOfThese: "None of these papers is indexed yet, so none can be found.",
            some: "{n} of {total} papers are indexed; the others cannot be found yet.",
            words: "Papers are found by their words alone: none is indexed by meaning yet.",
            someMeaning:
                "{n} of {total} papers are found by meaning, the others by their words alone.",
        },
    },
    results: "Hits",
    more: "More hits",
    fit: "How well it fits, beside the best hit: {n}",
    hidden: "Hidden",
    hiddenHint: "Only its owner and admins find it.",
    mine: "Yours",
    untitled: "(without a title)",
    like: "More like this",
    likeLabel: "More like this: {title}",
    likeOf: "More like",
    likeOfTitle: "More like: {title}",
    likeNone: "Nothing else is like it",
    likeNoneHint: "There may be nothing else of its kind yet.",
    likeGone:
        "There is nothing to compare with: it is not indexed yet, or is not there any more. " +
        "Posts are indexed some seconds after they were written.",
    back: "Back to the search",
    paper: "Paper",
    paperGone: "This paper is not in the corpus any more.",
    tooOften: "You have searched very often. Search again in {time}.",
    away: "Neither way of searching answers at the moment. Search again in a minute.",
    reason: {
        no_embedding_service:
            "This server has no service that searches by meaning: only texts that have your very " +
            "words are found.",
        embedding_service_away:
            "The search by meaning does not answer at the moment: only texts that have your very " +
            "words are found. Search again later for the rest.",
        nothing_embedded:
            "These texts are not indexed by meaning yet: only those that have your very words " +
            "are found.",
        index_rebuilt:
            "The index is being made anew, which takes some minutes. Until then hits may be " +
            "missing.",
        vector_store_away:
            "The index of meanings does not answer at the moment, or is behind: hits may be " +
            "missing. Search again later for the rest.",
        embedding_model_changed:
            "The search by meaning is being changed to another model: hits may be missing until " +
            "all texts are indexed again.",
        words_index_away:
            "The search for words does not answer at the moment: hits that have your very words " +
            "may be missing. Search again later for the rest.",
    } satisfies Record<SearchReason, string>,
    otherReason: "Part of the search does not answer at the moment: hits may be missing.",
    screen: "Screen the nearest papers",
    screenHint: "Has the AI judge the papers that are nearest to your search, one by one.",
    screening: {
        title: "Screen the nearest papers",
        back: "Back to the hits",
        which: "Papers",
        nearestTo: "Those nearest to the search",
        journals: "Journals",
        allJournals: "all that are indexed",
        years: "Years",
        allYears: "all",
        number: "How many",
        numberHint: "From 1 to {n}. What is nearest comes first.",
        numberWrong: "Choose a number from 1 to {n}.",
        question: "What should the AI find out about each paper?",
        found:
            "There is one such paper. | There are {n} such papers, fewer than you asked for.",
        none: "There are no such papers.",
        noneHint: "Papers can be chosen this way once their journals are indexed.",
        toEstimate: "Choose how many papers to see what the screening will cost.",
        scope: "Nearest to",
        scopeFound: "{n} of the {all} asked for",
        reason: {
            no_embedding_service:
                "This server has no service that finds near papers. Choose whole journals.",
            embedding_service_away:
                "The service that finds near papers does not answer. Try again later.",
            nothing_embedded:
                "No papers are indexed yet. Ask your administrator to have their journals indexed.",
            index_rebuilt:
                "The index is being made anew. A screening of the nearest papers can start once " +
                "it is complete, in some minutes.",
            vector_store_away:
                "The index does not answer, or is behind. Try again in some minutes.",
            embedding_model_changed:
                "The index is being changed to another model. A screening of the nearest papers " +
                "can start once it is complete.",
        } satisfies Record<NearestReason, string>,
    },
};
export default words;
