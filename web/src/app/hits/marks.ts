/* A snippet, cut where its marks begin and end: they count Unicode characters, not the halves of
 * them that strings of JavaScript are made of. */
export interface Piece {
    text: string;
    marked: boolean;
}

export function piecesOf(text: string, marks: { begin: number; end: number }[]): Piece[] {
    const chars = [...text];
    const pieces: Piece[] = [];
    const add = (from: number, to: number, marked: boolean) => {
        if (to > from) pieces.push({ text: chars.slice(from, to).join(""), marked });
    };
    let at = 0;
    for (const { begin, end } of marks) {
        add(at, begin, false);
        add(Math.max(at, begin), end, true);
        at = Math.max(at, end);
    }
    add(at, chars.length, false);
    return pieces;
}
