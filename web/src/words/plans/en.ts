/* Plans: their list, the form, how far one is, weeks and days. */
import type { PlanFailure, PlanKind, PlanWait } from "@/common/api";

const words = {
    title: "Plans",
    all: "All plans",
    new: "New plan",
    none: "No plans yet",
    noneHint: "Have a training or nutrition plan made; it will be listed here.",
    more: "Show older ones",
    active: "Active",
    open: "Open",
    kindLabel: "What the plan is for",
    kind: { training: "Training", nutrition: "Nutrition" } satisfies Record<
        PlanKind,
        string
    >,
    level: { easy: "easy", medium: "medium", hard: "hard" },
    perDay: "{n} kcal a day",
    ratio: "protein {protein}, carbs {carbs}, fat {fat}",
    making: "Being made",
    progress: "How far the plan is",
    now: { queued: "waits its turn", writing: "the AI writes", storing: "is being stored" },
    stage: { asked: "asked", written: "written", checked: "checked", stored: "stored" },
    ready: "The plan is ready.",
    cancel: "Cancel",
    cancelled: "Cancelled. It costs nothing.",
    tooLate: "It is too late to cancel: the plan is made already, or the task has ended.",
    waits: {
        service_down:
            "Waits for the AI service, which does not work at the moment ({words}). " +
            "It goes on automatically; nothing is charged before the plan is there.",
        no_key:
            "There is no key for the AI service. " +
            "Please tell your administrator; it goes on automatically afterwards.",
        no_money:
            "Your balance is less than the price by now. " +
            "It goes on automatically after a recharge.",
        account_stopped:
            "Your account is stopped until an administrator has looked at it. " +
            "The plan is made already, and is paid and stored afterwards.",
        no_permission:
            "Your account may not have the AI work at present. " +
            "Please tell your administrator; it goes on automatically afterwards.",
        permission_used:
            "Waits for your other screenings and plans: " +
            "the AI works on as many things for you at a time as your account allows.",
        too_slow: "The AI took too long, and is asked again automatically.",
        other: "It waits, and goes on automatically. The server says: {words}.",
    } satisfies Record<PlanWait, string>,
    failed: {
        service_down:
            "No plan was made, and nothing was charged: the AI service did not work " +
            "({words}). Try again later.",
        refused:
            "No plan was made, and nothing was charged: the AI service refused what it was " +
            "asked ({words}). Please tell your administrator.",
        too_slow:
            "No plan was made, and nothing was charged: the AI took too long each time. " +
            "Try again, perhaps with fewer weeks.",
        node_lost:
            "No plan was made, and nothing was charged: the server stopped at each try. " +
            "Please tell your administrator.",
        bad_answer:
            "No plan was made, and nothing was charged: what the AI wrote could not be used, " +
            "three times. Try again, perhaps with simpler wishes. The last mistake: {words}.",
        too_old:
            "No plan was made within 24 hours, and nothing was charged. Try again. " +
            "The server says: {words}.",
        other:
            "No plan was made, and nothing was charged. Try again; if it keeps happening, " +
            "tell your administrator. The server says: {words}.",
    } satisfies Record<PlanFailure, string>,
    failedSilently: "No plan was made, and nothing was charged. Try again.",
    template: "Template",
    noTemplates: "There is no template for such plans. Please tell your administrator.",
    noTemplate: "This template does not exist any more. Choose another one.",
    optional: "(optional)",
    range: "from {least} to {most}",
    price: "Price",
    costs: "This plan",
    priceHint: "Reserved now, and charged once the plan is there. A plan that fails is free.",
    limit: { minute: "Started this minute", day: "Started today", month: "Started this month" },
    limitUntil: "You have started as many plans as you may. You can start the next at {time}.",
    limitNow: "You have started as many plans as you may for now.",
    limitReached: "You have started as many plans as you may. Try again in {time}.",
    tooMany: "Too many of your plans are being made. Wait until one is ready, or cancel one.",
    notEnough:
        "What is free of your balance is less than the price. Ask your administrator for a " +
        "recharge, or wait until other work that has money reserved is done.",
    simulatedSoon:
        "This server has no AI but a simulated one: the plan will be made up, and charged.",
    simulated:
        "This plan is of the simulated AI. It is made up and means nothing: " +
        "your administrator has not connected a real AI.",
    make: "Make the plan",
    submitted: "The plan is being made.",
    lookAbove: "Some fields need another look.",
    wrong: {
        missing: "Please fill this in.",
        integer: "Must be a whole number.",
        number: "Must be a number.",
        range: "Must be from {least} to {most}.",
        long: "At most {most} characters.",
        short: "At least {least} characters.",
        date: "Must be a date.",
        noExercises: "Add an exercise, or make it a day of rest.",
        rest: "Tick “Day of rest” instead.",
        sum: "The meals add up to {n} kcal; they may differ from the target by 5 %.",
        day: "The server does not accept this day: {words}",
    },
    notFound: "There is no such plan",
    notFoundHint: "The address may be wrong, or it belongs to another account.",
    activate: "Make active",
    activateHint: "One plan of each kind is active: the one you follow now.",
    isActive: "This is your active plan now.",
    delete: "Delete",
    deleteTitle: "Delete “{name}”?",
    deleteText: "The plan and all of its days are deleted. What was paid is not given back.",
    keep: "Keep it",
    deleted: "The plan is deleted.",
    view: "View",
    turn: "Turn pages",
    week: "Week",
    day: "Day",
    weekOf: "Week {n} of {all}",
    weekBefore: "Week before",
    weekAfter: "Week after",
    dayBefore: "Day before",
    dayAfter: "Day after",
    today: "today",
    rest: "Rest",
    restText: "No exercises on this day.",
    restDay: "Day of rest",
    minutes: "{n} min",
    kcal: "{n} kcal",
    grams: "{n} g",
    dose: "{sets} × {reps}",
    pause: "rest {time}",
    others: "and {n} more",
    macros: "P {protein} · C {carbs} · F {fat} g",
    nutrient: "Nutrient",
    sum: "Meals",
    target: "Target",
    share: "Share of the target",
    calories: "Energy",
    protein: "Protein",
    carbs: "Carbs",
    fat: "Fat",
    meal: { breakfast: "Breakfast", lunch: "Lunch", dinner: "Dinner", snacks: "Snacks" },
    edit: "Edit day",
    save: "Save",
    saved: "The day is saved.",
    discard: "Discard changes",
    exercises: "Exercises",
    addExercise: "Add exercise",
    addFood: "Add food",
    remove: "Remove {name}",
    name: "Name",
    sets: "Sets",
    reps: "Reps",
    weight: "Weight",
    restTime: "Rest",
    difficulty: "Difficulty",
    field: {
        day_type: "Kind of training",
        focus_area: "Focus",
        duration: "Duration, minutes",
        estimated_calories: "Energy, kcal",
        target_calories: "Target energy, kcal",
        target_protein: "Target protein, g",
        target_carbs: "Target carbs, g",
        target_fat: "Target fat, g",
    },
    addsUp: "The meals add up to {n} kcal.",
    useSum: "Use this as the target",
    changedElsewhere:
        "This day was changed elsewhere since you opened it, so yours was not saved. " +
        "What you typed is still below.",
    newer: "The newer one",
    takeNewer: "Go on with the newer one",
    saveMine: "Save mine over it",
    mineKept: "You see the newer one. What you typed is kept.",
    takeMine: "Put it back",
    madeFrom: "What it was made from",
    made: "Made",
    /* Of the templates that come with millrace: these words stand in the database. */
    labels: {} as Record<string, string>,
};
export default words;
