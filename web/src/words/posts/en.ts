/* Posts: their list, one of them, the fields it is written in, how far its index is. */
import type { Reason } from "@/app/posts/posts";

type Status = "pending" | "processing" | "completed" | "failed";

const words = {
    title: "Posts",
    allPosts: "All posts",
    thePost: "The post",
    new: "New post",
    goOn: "Go on with your draft",
    which: "Which posts",
    of: { own: "Mine", all: "All" },
    about: {
        own:
            "Notes and articles of yours, in Markdown. Each is indexed, so that a search finds " +
            "it by what it means, not only by its words.",
        all: "Posts of everybody on this server that are not hidden, and all of yours.",
    },
    none: { own: "You have not written any posts", all: "There are no posts" },
    noneHint: "Write one; it will be listed here.",
    more: "Show older ones",
    untitled: "Untitled",
    hidden: "hidden",
    mine: "mine",
    unsaved: "unsaved changes",
    ofAnother: "by another user",
    written: "Written {time}",
    changed: "Changed {time}",
    reconnecting: "The connection is being restored; what you see may be old.",
    noService:
        "This server has no embedding service. Posts are found by their words meanwhile; they " +
        "are indexed by meaning as soon as your administrator connects one.",
    simulated: "The embedding service is a simulated one: what is near by meaning is a guess.",
    state: {
        pending: "waits to be indexed",
        processing: "being indexed",
        completed: "indexed",
        failed: "not indexed",
        empty: "no text",
    } satisfies Record<Status | "empty", string>,
    progress: "How much of the post is indexed",
    chunks: "{done} of {total} part | {done} of {total} parts",
    waitsForKey:
        "Waits for a key of the embedding service. " +
        "Please tell your administrator; it goes on automatically.",
    waits: {
        no_money:
            "Your balance is less than the price of indexing. " +
            "It goes on automatically after a recharge.",
        account_stopped:
            "Your account is stopped until an administrator has looked at it. " +
            "The post is indexed afterwards.",
        no_permission:
            "Your account may not use the AI at present. " +
            "Please tell your administrator; it goes on automatically afterwards.",
        permission_used:
            "Waits for your other work: the AI does as many things for you at a time as your " +
            "account allows.",
        node_lost:
            "The server stopped while it worked on the post, and tries again automatically.",
        no_embedding_service:
            "Waits for an embedding service, which this server does not have. Until then the " +
            "post is found by its words. Please tell your administrator.",
        service_down:
            "Waits for the embedding service or its store, which does not work at the moment " +
            "({words}). It goes on automatically.",
        refused: "The embedding service refused the text ({words}). It is tried again.",
        too_slow: "The embedding service took too long, and is asked again automatically.",
        too_long: "The post has too much text to be indexed ({words}).",
        bad_answer:
            "The embedding service gave no vectors that can be used ({words}), and is asked " +
            "again automatically.",
        other: "It waits, and goes on automatically. The server says: {words}.",
    } satisfies Record<Reason, string>,
    failed: {
        no_money: "It was not indexed: your balance was less than the price.",
        account_stopped: "It was not indexed: your account is stopped.",
        no_permission: "It was not indexed: your account may not use the AI.",
        permission_used: "It was not indexed: your other work used all that your account allows.",
        node_lost:
            "It was not indexed: the server stopped at each try. " +
            "Try again, or tell your administrator.",
        no_embedding_service: "It was not indexed: this server has no embedding service.",
        service_down:
            "It was not indexed: the embedding service or its store did not work ({words}). " +
            "Try again later.",
        refused:
            "It was not indexed: the embedding service refused the text ({words}). " +
            "Please tell your administrator.",
        too_slow:
            "It was not indexed: the embedding service took too long each time. Try again later.",
        too_long:
            "It was not indexed: it has too much text ({words}). Make several posts out of it.",
        bad_answer:
            "It was not indexed: the embedding service gave no vectors that can be used, at each " +
            "try ({words}). Try again, or tell your administrator.",
        other:
            "It was not indexed. Try again; if it keeps happening, tell your administrator. " +
            "The server says: {words}.",
    } satisfies Record<Reason, string>,
    failedSilently: "It was not indexed. Try again.",
    index: "Index now",
    indexCosts: "It is put before others, and costs {price} when it is done.",
    queued: "It is put before the others that wait.",
    leftToday: "{n} of {of} left today",
    limitUntil: "You have had as many posts indexed by hand as you may. Again at {time}.",
    limitNow: "You have had as many posts indexed by hand as you may for now.",
    limitReached: "You have had as many posts indexed by hand as you may. Try again in {time}.",
    nothingToIndex: "The post has no text: there is nothing to index.",
    queueFull: "Too many posts wait to be indexed. Try again in a few minutes.",
    tooMany: "You have {n} posts, the most there may be. Delete some of them first.",
    notEnough:
        "What is free of your balance is less than the price of indexing a post. Ask your " +
        "administrator for a recharge.",
    forbidden:
        "Your account may not have posts indexed at present. Please tell your administrator.",
    price: "Indexing costs {price} for each new text; a change of title or visibility is free.",
    edit: "Edit",
    goOnEditing: "Go on editing",
    editTitle: "Edit post",
    delete: "Delete",
    deleteTitle: "Delete “{name}”?",
    deleteText: "It is gone for everybody, and is not found any more. This cannot be undone.",
    keep: "Keep it",
    deleted: "The post is deleted.",
    changedBeforeDelete:
        "It was changed elsewhere meanwhile, and is not deleted. Look at it, then delete it again.",
    empty: "This post has no text.",
    notFound: "There is no such post",
    notFoundHint: "It may be deleted or hidden, or the address is wrong.",
    notYours: "This post is of another user",
    notYoursHint: "You can read it, but not change it.",
    titleLabel: "Title",
    contentLabel: "Text",
    markdownHint: "Markdown: # heading, **bold**, *italic*, - list, [link](https://…), `code`",
    view: "What is shown",
    views: { write: "Write", preview: "Preview" },
    preview: "Preview",
    previewEmpty: "What you write is shown here as readers will see it.",
    charsLeft: "{n} characters left",
    charsOver: "{n} characters too many",
    contentRefused: "The server does not take this text: {words}.",
    nothing: "Write a title or a text first.",
    hide: "Hide this post.",
    hideHint: "Only you and administrators see and find it.",
    save: "Save",
    saved: "The post is saved.",
    cancel: "Cancel",
    discard: "Discard changes",
    keptHere: "Not saved yet; kept in this browser.",
    unkept: "Your browser has no room left to keep this text. Save it before you leave.",
    restored: "This is what you typed last time; it is not saved yet.",
    changedElsewhere:
        "This post was changed elsewhere since you opened it, so yours was not saved. " +
        "What you typed is still below.",
    newer: "The newer one",
    takeNewer: "Go on with the newer one",
    saveMine: "Save mine over it",
    mineKept: "You see the newer one. What you typed is kept.",
    takeMine: "Put it back",
    goneMeanwhile: "This post was deleted elsewhere. What you typed is still below.",
    saveAsNew: "Save it as a new post",
};
export default words;
