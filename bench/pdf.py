"""pdf.py FILE PAGES: writes a PDF of text, two columns of 55 lines a page, as papers have."""
import sys
import zlib

WORDS = ("patients received the intervention daily and outcomes were measured after twelve weeks "
         "with a mean difference of in both groups while adverse events remained rare").split()


def page_of(number):
    lines = []
    for column, x in enumerate((50, 310)):
        lines.append(f"BT /F1 9 Tf 12 TL {x} 740 Td")
        for i in range(55):
            at = number * 131 + column * 57 + i * 7
            words = " ".join(WORDS[(at + k * (1 + i % 5)) % len(WORDS)] for k in range(7))
            lines.append(f"({words} {at % 97}.{i % 10}) Tj T*")
        lines.append("ET")
    return zlib.compress("\n".join(lines).encode())


def main():
    path, pages = sys.argv[1], int(sys.argv[2])
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(pages))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>",
               f"<< /Type /Pages /Count {pages} /Kids [{kids}] >>".encode(),
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>"]
    for i in range(pages):
        content = page_of(i)
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * i}"
                       " 0 R /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        objects.append(f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode() +
                       content + b"\nendstream")
    out, at = b"%PDF-1.5\n", []
    for i, o in enumerate(objects):
        at.append(len(out))
        out += f"{i + 1} 0 obj\n".encode() + o + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{a:010} 00000 n \n".encode() for a in at)
    out += (f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
            f"startxref\n{table}\n%%EOF\n").encode()
    with open(path, "wb") as f:
        f.write(out)


main()
