/* Papers without a DOI have a made-up key; only real ones lead anywhere. */
export const doiLink = (doi: string): string | undefined =>
    /^10\.\d{4,9}\//.test(doi)
        ? "https://doi.org/" + doi.split("/").map(encodeURIComponent).join("/")
        : undefined;
