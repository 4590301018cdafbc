/* test_strip.c - line numbers and code fences that were copied along. */
#include "../support/t_edit.h"

#ifdef HFSBI_SPLIT
typedef struct listing_case {
    const char *text;
    size_t      lines, prefixed;
    bool        consecutive;
    const char *stripped; /* NULL: not of interest */
} listing_case;

static void listings_are_told_from_other_text(void) {
    static const listing_case list[] = {
        {"", 0, 0, false, NULL},
        {"a\n", 1, 0, false, NULL},
        {"1\ta", 1, 1, true, "a"},
        {"1\ta\n2\tb\n", 2, 2, true, "a\nb\n"},
        {"  9\ta\n 10\tb", 2, 2, true, "a\nb"},
        {"1|a\n2|b\n", 2, 2, true, "a\nb\n"},
        {"1 | a\n2 |\n3 | \n", 3, 3, true, "a\n\n\n"},
        {"1: a\n2:\n3: \n", 3, 3, true, "a\n\n\n"},
        {"7\xE2\x86\x92" "a\n8\xE2\x86\x92\n", 2, 2, true, "a\n\n"},
        {"1\t1\ta\n2\t2\n", 2, 2, true, "1\ta\n2\n"},
        /* a number alone is an empty line of a listing, or data */
        {"1\ta\n2\n3\tb\n", 3, 3, true, "a\n\nb\n"},
        {"1\n2\tb\n", 2, 2, true, "\nb\n"},
        {"1\n\n", 2, 0, false, NULL},
        {"1\n2\n3\n", 3, 0, false, NULL},
        {"1\n2\tb\nc\n", 3, 1, false, NULL},
        {"1\ta\n3\n", 2, 2, false, NULL},
        {"1\n3\tb\n", 2, 2, false, NULL},
        /* not by one, not alike, not all */
        {"1\ta\n3\tb\n", 2, 2, false, "a\nb\n"},
        {"2\ta\n1\tb\n", 2, 2, false, "a\nb\n"},
        {"1\ta\n1\tb\n", 2, 2, false, "a\nb\n"},
        {"1\ta\n2|b\n", 2, 2, false, "a\nb\n"},
        {"1\ta\nb\n", 2, 1, false, NULL},
        {"b\n1\ta\n", 2, 1, false, NULL},
        {"1a\n", 1, 0, false, NULL},
        {"1 a\n", 1, 0, false, NULL},
        {"1:a\n", 1, 0, false, NULL},
        {"-1\ta\n", 1, 0, false, NULL},
        {"\ta\n", 1, 0, false, NULL},
        /* 18 digits at most */
        {"999999999999999998\ta\n999999999999999999\tb\n", 2, 2, true,
         "a\nb\n"},
        {"1000000000000000000\ta\n", 1, 0, false, NULL},
        {"0000000000000000001\ta\n", 1, 0, false, NULL},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_str       text = t_exact(list[i].text, strlen(list[i].text));
        hfsbi_numbered n = hfsbi_numbered_scan(text);
        hfsb_buf       out = HFSB_INIT;
        bool           ok = n.lines == list[i].lines &&
                  n.prefixed == list[i].prefixed &&
                  n.consecutive == list[i].consecutive;
        hfsbi_numbered_strip(text, &out);
        if (list[i].stripped)
            ok = ok && te_same(&out, hfsb_cstr(list[i].stripped));
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: %zu %zu %d %s\n", i, n.lines, n.prefixed,
                   n.consecutive, out.ptr ? out.ptr : "");
        hfsb_buf_free(&out);
        t_drop(text);
    }
}

typedef struct fence_case {
    const char *old_text, *new_text;
    const char *old_inside, *new_inside; /* NULL: not fenced alike */
} fence_case;

static void fences_are_removed_from_both_texts(void) {
    static const fence_case list[] = {
        {"```\na\n```", "```\nb\n```", "a\n", "b\n"},
        {"```\na\n```\n", "```\nb\n```\n\n \n", "a\n", "b\n"},
        {"```c\na\n\nb\n``` \t", "```c\n```", "a\n\nb\n", ""},
        {"~~~ c\na\n~~~", "~~~ c\nb\nc\n~~~", "a\n", "b\nc\n"},
        {"````\n```\na\n```\n````", "````\nb\n````", "```\na\n```\n", "b\n"},
        {"```\na\n`````", "```\nb\n```", "a\n", "b\n"},
        {"```\n`a`\n``\n~~~\n```", "```\nb\n```", "`a`\n``\n~~~\n", "b\n"},
        {"```\n\n```", "```\nb\n```", "\n", "b\n"},
        /* an empty line for no text, unless old_text ends in one */
        {"```\na\n```", "```\n\n```", "a\n", ""},
        {"```\na\n\n```", "```\n\n```", "a\n\n", "\n"},
        {"```\na\n```", "```\n\n\n```", "a\n", "\n\n"},
        /* one text only, not alike, not closed, or nothing inside */
        {"a\n", "b\n", NULL, NULL},
        {"", "", NULL, NULL},
        {"```\na\n```", "b\n", NULL, NULL},
        {"a\n", "```\nb\n```", NULL, NULL},
        {"```c\na\n```", "```\nb\n```", NULL, NULL},
        {"```\na\n", "```\nb\n```", NULL, NULL},
        {"```\na\n```", "```\nb\n", NULL, NULL},
        {"```", "```", NULL, NULL},
        {"```\n", "```\nb\n```", NULL, NULL},
        {"``\na\n``", "``\nb\n``", NULL, NULL},
        {"```a```\nb\n```", "```a```\nc\n```", NULL, NULL},
        {"```\na\n``", "```\nb\n```", NULL, NULL},
        {"```\na\n~~~", "```\nb\n~~~", NULL, NULL},
        {"```\na\n```c", "```\nb\n```c", NULL, NULL},
        {"```\na\n```\nb\n```", "```\nc\n```\nb\n```", NULL, NULL},
        {"```\n```", "```\nb\n```", NULL, NULL},
        {" ```\na\n```", " ```\nb\n```", NULL, NULL},
        {"---\na\n---", "---\nb\n---", NULL, NULL},
        {"```\n\na\n```", "```\n\n```", "\na\n", ""},
        {"```\n~```\n```", "```\nb\n```", "~```\n", "b\n"},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        const fence_case *c = list + i;
        hfsb_str a = t_exact(c->old_text, strlen(c->old_text)), x = a;
        hfsb_str b = t_exact(c->new_text, strlen(c->new_text)), y = b;
        bool     found = hfsbi_unfence_both(&x, &y);
        bool     ok = c->old_inside
                          ? found &&
                            hfsb_str_equal(x, hfsb_cstr(c->old_inside)) &&
                            hfsb_str_equal(y, hfsb_cstr(c->new_inside))
                          : !found && x.ptr == a.ptr && x.len == a.len &&
                            y.ptr == b.ptr && y.len == b.len;
        T_CHECK(ok);
        if (!ok) printf("  case %zu: %d\n", i, found);
        t_drop(a);
        t_drop(b);
    }
}
#endif

int main(void) {
#ifdef HFSBI_SPLIT
    T_RUN(listings_are_told_from_other_text);
    T_RUN(fences_are_removed_from_both_texts);
#endif
    return T_END();
}
