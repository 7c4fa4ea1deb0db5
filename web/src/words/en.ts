/* `satisfies` ties words to the enums of the API: a value that has no words does not compile. */
import type { LedgerEntry, Run, State } from "@/common/api";

const words = {
    app: { tagline: "Literature screening, paper by paper" },
    nav: {
        home: "Screen papers",
        account: "Account",
        balance: "Balance",
        reserved: "reserved",
        free: "free",
        logout: "Log out",
        language: "中文",
        languageLabel: "切换到中文",
        theme: "Appearance",
        light: "Light",
        dark: "Dark",
        system: "Same as the system",
        skip: "Skip to the content",
        menu: "Menu of {name}",
        main: "Main",
    },
    link: {
        offline: "The server cannot be reached. Nothing you entered is lost; trying again…",
        degraded:
            "Part of the server does not answer. What you see may be some seconds old, and " +
            "runs may wait. They can be paused and terminated; try anything else once it is back.",
    },
    error: {
        network: "The server cannot be reached. Check your connection and try again.",
        unauthenticated: "Your session has ended. Please log in again; what you entered is kept.",
        wrongLogin: "Wrong user name or password.",
        forbidden: "This is not allowed: {message}.",
        not_found: "This does not exist, or is not yours.",
        conflict: "Not possible now: {message}.",
        exists: "{message}.",
        funds:
            "What is free of your balance is too little. Wait until other screenings have ended, " +
            "ask your administrator for a recharge, or choose fewer papers.",
        rate: "Too many attempts. Try again in {time}.",
        busy: "The server is busy. Try again in a moment.",
        unavailable: "The server cannot do this right now. Try again in a moment.",
        uncertain: "The server cannot tell whether this was done. Check before you try again.",
        limit: "This is too large: {message}.",
        invalid: "{message}",
        other:
            "Something went wrong ({message}). " +
            "Try again; if it keeps happening, tell your administrator.",
        retry: "Try again",
        dismiss: "Close",
    },
    time: { seconds: "{n} s", minutes: "{n} min", hours: "{h} h {m} min", range: "{from} to {to}" },
    login: {
        title: "Log in",
        register: "Create account",
        username: "User name",
        password: "Password",
        login: "Log in",
        doRegister: "Create account and log in",
        toRegister: "New here? Create an account",
        toLogin: "Have an account? Log in",
        nameHint: "3 to 32 letters, digits, _, - or Chinese characters",
        passwordHint: "8 to 72 characters",
        administrator: "your administrator",
        closed: "New accounts cannot be created here at present. Ask {contact} for one.",
        banned: "Your account is banned. Ask {contact} about it.",
        lead: "Read ten thousand abstracts by this afternoon.",
        points: [
            "Pick journals and years, ask one question in plain words.",
            "Every abstract is judged, with a reason you can check.",
            "Pay per paper, see the price first, pause whenever you like.",
        ],
    },
    home: {
        title: "New screening",
        history: "History",
        historyEmpty: "Nothing here yet",
        historyEmptyHint: "Your screenings will be listed here.",
        noMoney: "Your balance is 0.00. Ask {contact} for a recharge; then you can start.",
        more: "Show older ones",
        found: "{n} relevant",
        distilled: "Distilled from the screening above",
        step1: "Journals",
        step2: "Years",
        step3: "Question",
        fields: "Fields",
        subfields: "Subfields",
        subfieldsOf: "Subfields of the chosen fields",
        clear: "Clear",
        search: "Search journals by name",
        selectAll: "Select all {n} shown",
        selected: "{n} selected",
        price: "{n} pt per paper",
        papers: "{n} papers",
        paper: "paper | papers",
        updated: "updated {date}",
        noJournals: "No journal matches",
        noJournalsHint: "Choose other fields, or search for another word.",
        yearsOf: "Papers of {name}, {from} to {to}",
        from: "From",
        to: "To",
        allYears: "All years",
        lastYears: "Last {n} years",
        yearsHint: "Papers of the chosen journals by year",
        noYears: "Choose journals to see their years.",
        question: "What should the AI find out about each paper?",
        placeholder: "Describe which papers you want to keep, as you would to a colleague.",
        examples: "Examples",
        exampleList: [
            "Does the paper report a randomised controlled trial in children or adolescents?",
            "Does it study catalysts that split water under visible light?",
            "Does the paper measure the effect of air pollution on mental health?",
        ],
        chars: "{n} of {max} characters",
        summary: "Estimate",
        update: "Update estimate",
        toEstimate: "Choose journals to see what the screening will cost.",
        total: "Papers",
        withoutAbstract: "Without abstract",
        withoutAbstractHint:
            "Judged by their title alone. Those without a title, too, are not judged and cost " +
            "nothing.",
        simulated:
            "This server has no AI but a simulated one: the verdicts will be made up, and charged.",
        gone:
            "One journal of the selection is not in the catalog any more. | " +
            "{n} journals of the selection are not in the catalog any more.",
        cost: "Cost",
        balance: "Your balance",
        reserved: "Reserved for unfinished screenings",
        free: "Free",
        freeUnknown: "not known now",
        left: "Left afterwards",
        missing: "Missing",
        notEnough:
            "Your balance is too low for this selection. " +
            "Ask your administrator for a recharge, or choose fewer papers.",
        notEnoughFree:
            "What is free of your balance is too little: part of it is reserved for screenings " +
            "that are not finished. Wait until they have ended, terminate one, ask your " +
            "administrator for a recharge, or choose fewer papers.",
        duration: "Expected time",
        durationUnknown: "not known yet",
        perJournal: "By journal",
        held: "A screening that you start now waits. {why}",
        start: "Start screening",
        started: "The screening is queued.",
        needJournals: "Choose at least one journal.",
        needQuestion: "Write a question.",
        needPapers: "There are no papers of these journals in these years.",
        stopped: "Your account is on hold. Please tell your administrator; start again afterwards.",
        noPermission: "Your account may not start screenings. Ask your administrator.",
    },
    state: {
        QUEUED: "Queued",
        RUNNING: "Running",
        PAUSED: "Paused",
        DONE: "Done",
        CANCELLED: "Terminated",
        FAILED: "Failed",
    } satisfies Record<State, string>,
    run: {
        back: "All screenings",
        distillationOf: "Distilled from",
        parent: "an earlier screening",
        progress: "Progress",
        of: "{done} of {all} papers",
        rate: "{n} papers/s",
        left: "about {time} left",
        queued: "Waiting in the queue. It starts automatically.",
        reconnecting: "Live progress is interrupted; reconnecting…",
        relevant: "Relevant",
        notRelevant: "Not relevant",
        failed: "Failed",
        notJudged: "Not judged",
        notJudgedHint: "They have neither title nor abstract. They cost nothing.",
        withdrawn: "Withdrawn",
        withdrawnHint: "They had left the corpus when their turn came. They cost nothing.",
        cost: "Charged",
        atMost: "of at most {cost}",
        workers: "Judged at once",
        pause: "Pause",
        resume: "Resume",
        terminate: "Terminate",
        terminateTitle: "Terminate this screening?",
        terminateText:
            "This is final. The {n} papers judged so far stay yours, and can be downloaded; " +
            "the rest will not be judged or charged.",
        keep: "Keep it going",
        reason: {
            funds:
                "Paused because your balance ran out. " +
                "After a recharge, resume it: nothing is lost.",
            account:
                "Paused because your account is on hold. " +
                "Please tell your administrator; it goes on automatically afterwards.",
            unrecorded:
                "Paused because verdicts cannot be recorded. " +
                "Nothing is charged meanwhile; please tell your administrator.",
            banned: "Paused because your account is banned. Please ask your administrator.",
            admin: "Terminated by an administrator. What was judged stays yours.",
            expired: "Terminated because it was paused for 7 days. What was judged stays yours.",
            refused:
                "Paused because the AI service refuses the requests: {words}. " +
                "Please tell your administrator, then resume it.",
            account_stopped:
                "Your account is on hold. Please ask your administrator; " +
                "it goes on automatically afterwards.",
            repairing:
                "The server was interrupted and is putting its records in order. " +
                "It goes on automatically; nothing is lost.",
            new_runs_off:
                "New screenings are not being started at the moment. It starts automatically.",
            drained: "No server takes work at the moment. It goes on automatically.",
            no_permission:
                "Your account may not have papers judged at the moment. " +
                "Please ask your administrator; it goes on automatically afterwards.",
            keys_resting:
                "The AI service has asked us to wait until {until}. It goes on automatically.",
            service_down:
                "The AI service has not worked since {since}: {cause}. " +
                "We keep trying, and it goes on automatically; no paper is lost.",
            queued: "Number {n} of {of} in the queue. It starts automatically.",
            rate_limit:
                "Slowed down by the limit of the AI service: {limit} requests a minute. " +
                "It goes on automatically.",
        } satisfies Record<
            Exclude<Run["reason_code"], "other" | "no_key" | null | undefined>,
            string
        >,
        noKey: {
            none:
                "There is no key for the AI service. " +
                "Please tell your administrator; it goes on automatically afterwards.",
            refused:
                "The AI service refuses all of our keys. " +
                "Please tell your administrator; it goes on automatically afterwards.",
            off:
                "All keys for the AI service are switched off. " +
                "Please tell your administrator; it goes on automatically afterwards.",
            capped:
                "The quota of all keys for the AI service is used up. " +
                "Please tell your administrator; it goes on automatically afterwards.",
            cappedUntil:
                "The quota of all keys for the AI service is used up until {until}. " +
                "It goes on automatically then.",
            mixed:
                "No key for the AI service can be used. " +
                "Please tell your administrator; it goes on automatically afterwards.",
        } as Record<string, string>,
        downCause: {
            proxy: "the proxy before it does not let calls through",
            dns: "its name cannot be found",
            refused: "it takes no connections",
            tls: "no secure connection can be made",
            unreachable: "it cannot be reached",
            timeout: "it does not answer in time",
            cut: "it cuts the connection",
            unreadable: "its answers cannot be read",
            reply: "its answers cannot be read",
            no_key: "there is no key that can be used",
            status: "it answers with error {status}",
            other: "its calls fail",
        } as Record<string, string>,
        doneFailed: "Done, {n} failed",
        waiting: "Waiting",
        otherReason: "The server says: {words}.",
        queuedOwn:
            "Waits for your other screenings, which use all {n} papers that your account may " +
            "have judged at once. It starts automatically.",
        paused:
            "Paused. Nothing is charged meanwhile; after 7 days a paused screening is terminated.",
        retryFailed: "Retry {n} failed",
        retryWithdrawn: "Look again for {n} withdrawn",
        results: "Results",
        charts: "Charts",
        flow: "Flow diagram",
        notFound: "There is no such screening",
        notFoundHint: "The address may be wrong, or it belongs to another account.",
    },
    simulated: {
        mark: "Simulated",
        text:
            "The verdicts are of the simulated AI. They are made up and mean nothing: " +
            "your administrator has not connected a real AI.",
    },
    scope: {
        title: "Scope",
        again: "Screen again",
        againHint: "Opens the form with the same journals, years and question.",
        years: "Years",
        papers: "Papers",
        withoutAbstract: "Without abstract",
        journals: "Journals",
        price: "Points per paper",
        submitted: "Submitted",
        started: "Started",
        ended: "Ended",
        judgedBy: "Model {model}, since {time}",
        prompt: "prompt {digest}…",
        notYet: "The model is known once the first paper is judged.",
        distilledFrom: "The {relevant} relevant of {papers} papers of:",
        save: "Save the scope as JSON",
    },
    results: {
        all: "All",
        relevant: "Relevant",
        irrelevant: "Not relevant",
        failed: "Failed",
        noVerdict: "Without verdict",
        notJudged: "Not judged",
        withdrawn: "Withdrawn",
        filter: "Show",
        search: "Search titles, reasons, journals, DOIs",
        loading: "Loading {n} of {all}…",
        shown: "{n} papers",
        notJudgedWhy: "It has neither title nor abstract.",
        withdrawnWhy: "It had left the corpus when its turn came.",
        untitled: "(no title known)",
        gone: "(not in the corpus any more)",
        goneHint: "The paper is not in the corpus any more.",
        unread: "The paper cannot be read at the moment.",
        none: "No papers yet",
        noneHint: "Papers appear here as soon as they are judged.",
        noMatch: "No paper matches",
        noMatchHint: "Change the filter or the search.",
        noRelevant: "No relevant papers",
        noRelevantHint: "None were found so far. A wider question may find more.",
        noRelevantFailed: "No relevant papers so far",
        noRelevantFailedHint: "{n} papers failed and have no verdict. Retry them first.",
        noIrrelevant: "Every paper is relevant",
        noIrrelevantHint: "A narrower question may tell them apart.",
        noFailed: "No paper has failed",
        noFailedHint: "Every judged paper has a verdict.",
        grid: "Judged papers. Arrow keys move, Enter opens the abstract.",
        abstract: "Abstract",
        noAbstract: "The corpus has no abstract for this paper.",
        bibtex: "BibTeX",
        copy: "Copy BibTeX",
        copied: "Copied.",
        open: "Open at the publisher",
        close: "Close",
        madeUp: "no DOI known",
        previous: "Previous paper",
        next: "Next paper",
    },
    download: {
        title: "Download",
        label: "Download results",
        relevant: "Relevant papers",
        all: "All papers",
        csv: "CSV (Excel)",
        bib: "BibTeX",
        ris: "RIS (Zotero, EndNote)",
        scope: "Scope (JSON)",
        building: "Building the file… {n} %",
        ready: "{name} is being downloaded.",
        failed: "The file could not be built: {message}",
    },
    distill: {
        button: "Distil",
        title: "Distil the relevant papers",
        text:
            "Asks a second, sharper question about the {n} relevant papers only, at a tenth of " +
            "their price.",
        question: "The sharper question",
        start: "Start distillation",
        unavailable: "Distillation is not available on this server.",
        notYet: "The results are being archived. Try again in a moment.",
        papers: "{n} papers for {cost}",
        cancel: "Cancel",
        hint: "Available once the screening has ended with at least one relevant paper.",
    },
    chart: {
        years: "Relevant papers by year",
        journals: "Relevant papers by journal",
        none: "No relevant papers to draw yet.",
        others: "others",
        table: "As a table",
    },
    prisma: {
        title: "Flow of papers",
        identified: "Papers identified",
        screened: "Papers judged",
        excluded: "Not relevant",
        failed: "No verdict",
        notJudged: "Without title and abstract",
        withdrawn: "Not in the corpus any more",
        simulated: "Simulated: the verdicts were made up",
        open: "Not judged yet",
        included: "Papers included",
        stage: "Question {n}",
        save: "Save as SVG",
        label: "{papers} papers identified, {included} included after {stages} questions",
    },
    account: {
        title: "Account",
        you: "You",
        number: "User number",
        balance: "Balance",
        reserved: "Reserved for unfinished screenings",
        free: "Free to spend",
        unknown: "not known now",
        permission: "Papers judged at once",
        recharge: "Recharges are made by your administrator.",
        stopped: "Your account is on hold.",
        stoppedSince: "Your account is on hold (since {time}).",
        stoppedText:
            "The records of what was spent do not match. Nothing is charged meanwhile, and " +
            "nothing you have is lost. Please tell your administrator; your screenings go on " +
            "afterwards.",
        password: "Password",
        old: "Current password",
        new: "New password",
        again: "New password again",
        differs: "The two passwords do not match.",
        change: "Change password",
        changed: "Your password is changed. All other sessions were ended.",
        wrongOld: "This is not your current password.",
        sessions: "Sessions",
        sessionsHint: "Where you are logged in.",
        current: "this session",
        since: "since {time}",
        active: "last used {time}",
        end: "End",
        endLabel: "End the session at {where}",
        endOthers: "End all other sessions",
        ended: "The session is ended.",
        ledger: "Ledger",
        ledgerHint: "Every charge and every recharge, newest first.",
        csv: "Export as CSV",
        when: "When",
        what: "What",
        amount: "Amount",
        paper: "Paper",
        run: "Screening",
        show: "open",
        onlyMoves: "Hide charges for single papers",
        ledgerEmpty: "No entries yet",
        ledgerEmptyHint: "Charges appear here a few seconds after a paper is judged.",
        more: "Show more",
        kind: {
            opening: "Opening balance",
            charge: "Paper judged",
            recharge: "Recharge",
            deduction: "Deduction",
            reversal: "Given back",
        } satisfies Record<LedgerEntry["kind"], string>,
    },
};
export type Words = typeof words;
export default words;
