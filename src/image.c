/* image.c - what the first bytes of a file say of a picture. Depends on:
   base. */
#include "image.h"

/* n bytes from `at` on; 0 when they are not there. */
static unsigned long hfsbi_image_number(hfsb_str head, size_t at, size_t n,
                                        bool big) {
    unsigned long value = 0;
    size_t        i;
    if (head.len < n || at > head.len - n) return 0;
    for (i = 0; i < n; i++)
        value =
            value << 8 | (unsigned char)head.ptr[at + (big ? i : n - 1 - i)];
    return value;
}

static bool hfsbi_image_has(hfsb_str head, size_t at, hfsb_str part) {
    return at <= head.len &&
           hfsb_str_starts(hfsb_str_slice(head, at, head.len), part);
}

static void hfsbi_image_png(hfsb_str head, hfsbi_image *out) {
    if (!hfsbi_image_has(head, 0, HFSB_LIT("\x89PNG\r\n\x1A\n")) ||
        !hfsbi_image_has(head, 12, HFSB_LIT("IHDR")) || head.len < 33)
        return;
    out->mime = "image/png";
    out->width = hfsbi_image_number(head, 16, 4, true);
    out->height = hfsbi_image_number(head, 20, 4, true);
}

/* It begins with letters, as a text may: its size or what follows it has
   bytes that no text has. */
static void hfsbi_image_gif(hfsb_str head, hfsbi_image *out) {
    bool   text = true;
    size_t i;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("GIF87a")) &&
        !hfsbi_image_has(head, 0, HFSB_LIT("GIF89a")))
        return;
    for (i = 6; i < 13 && i < head.len; i++)
        if ((unsigned char)head.ptr[i] < '\t') text = false;
    if (text || head.len < 13) return;
    out->mime = "image/gif";
    out->width = hfsbi_image_number(head, 6, 2, false);
    out->height = hfsbi_image_number(head, 8, 2, false);
}

/* Parts, each with its length, up to the one that begins a frame. */
static void hfsbi_image_jpeg(hfsb_str head, hfsbi_image *out) {
    size_t at = 2;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("\xFF\xD8\xFF"))) return;
    while (at + 9 <= head.len && (unsigned char)head.ptr[at] == 0xFF) {
        unsigned      kind = (unsigned char)head.ptr[at + 1];
        unsigned long length = hfsbi_image_number(head, at + 2, 2, true);
        if (kind == 0xFF) { /* filled up */
            at++;
            continue;
        }
        if (kind >= 0xC0 && kind <= 0xCF && kind != 0xC4 && kind != 0xC8 &&
            kind != 0xCC) {
            out->mime = "image/jpeg";
            out->height = hfsbi_image_number(head, at + 5, 2, true);
            out->width = hfsbi_image_number(head, at + 7, 2, true);
            return;
        }
        if (kind < 0xC0 || length < 2) return;
        at += 2 + length;
    }
}

/* Three kinds, each with its size elsewhere. */
static void hfsbi_image_webp(hfsb_str head, hfsbi_image *out) {
    unsigned long bits;
    if (!hfsbi_image_has(head, 0, HFSB_LIT("RIFF")) ||
        !hfsbi_image_has(head, 8, HFSB_LIT("WEBP")) || head.len < 30)
        return;
    if (hfsbi_image_has(head, 12, HFSB_LIT("VP8X"))) {
        out->width = hfsbi_image_number(head, 24, 3, false) + 1;
        out->height = hfsbi_image_number(head, 27, 3, false) + 1;
    } else if (hfsbi_image_has(head, 12, HFSB_LIT("VP8L")) &&
               (unsigned char)head.ptr[20] == 0x2F) {
        bits = hfsbi_image_number(head, 21, 4, false);
        out->width = (bits & 0x3FFF) + 1;
        out->height = (bits >> 14 & 0x3FFF) + 1;
    } else if (hfsbi_image_has(head, 12, HFSB_LIT("VP8 ")) &&
               hfsbi_image_has(head, 23, HFSB_LIT("\x9D\x01\x2A"))) {
        out->width = hfsbi_image_number(head, 26, 2, false) & 0x3FFF;
        out->height = hfsbi_image_number(head, 28, 2, false) & 0x3FFF;
    }
    out->mime = "image/webp";
}

HFSBI_FN hfsbi_image hfsbi_image_look(hfsb_str head) {
    hfsbi_image image = HFSB_INIT;
    hfsbi_image_png(head, &image);
    if (!image.mime) hfsbi_image_gif(head, &image);
    if (!image.mime) hfsbi_image_jpeg(head, &image);
    if (!image.mime) hfsbi_image_webp(head, &image);
    if (!image.width || !image.height) image.mime = NULL;
    return image;
}
