/* test_edit.c - replacements, rung by rung. Refusals are in
   test_edit_refusals.c, their hints in test_edit_hints.c, modes and several
   edits at once in test_edit_calls.c. */
#include "../support/t_edit.h"

#define NBSP     "\xC2\xA0"
#define ELLIPSIS "\xE2\x80\xA6"
#define EM_DASH  "\xE2\x80\x94"
#define EN_DASH  "\xE2\x80\x93"
#define LQUO     "\xE2\x80\x9C"
#define RQUO     "\xE2\x80\x9D"
#define APOS     "\xE2\x80\x99"
#define ZWSP     "\xE2\x80\x8B"
#define WJ       "\xE2\x81\xA0" /* word joiner */
#define ZWJ      "\xE2\x80\x8D"
#define BOM      "\xEF\xBB\xBF"

static const char trailing[] = "(matched after trimming trailing whitespace)";
static const char unicode[] = "(matched after unicode normalization)";
static const char runs[] = "(matched after collapsing runs of blanks)";
static const char trimmed[] = "(matched after trimming whitespace)";
static const char trimmed_put[] =
    "(matched after trimming whitespace) "
    "(new_str re-indented as the file is)";
static const char stripped[] = "(line-number prefixes removed)";
static const char unfenced[] = "(code fences removed)";
static const char but_blank[] = "(matched but for blank lines)";

/* ---- replacing, rung by rung ---- */

typedef struct replace_case {
    const char *content, *old_str, *new_str;
    const char *note;   /* NULL: "" */
    const char *result; /* NULL: not found */
} replace_case;

static void check_result(const te_run *run, size_t i, const char *note,
                         const char *result) {
    bool ok = run->st == HFSB_OK &&
              te_same(&run->out, hfsb_cstr(result)) &&
              !strcmp(run->r.note, note ? note : "");
    T_CHECK(ok);
    if (!ok)
        printf("  case %zu: %s\n  note %s\n  is   \"%s\"\n  want \"%s\"\n", i,
               run->err.msg, run->r.note, run->out.ptr ? run->out.ptr : "",
               result);
}

static void check_replacements(const replace_case *list, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        hfsb_edit edit = te_make(list[i].old_str, list[i].new_str);
        te_run    run = te_edits(hfsb_cstr(list[i].content), &edit, 1, NULL);
        if (list[i].result) {
            check_result(&run, i, list[i].note, list[i].result);
        } else {
            T_CHECK(run.st == HFSB_NOT_FOUND);
            if (run.st != HFSB_NOT_FOUND)
                printf("  case %zu: %s\n", i, run.out.ptr);
        }
        te_free(&run);
    }
}

static void edit_replaces_an_exact_match(void) {
    static const replace_case list[] = {
        {"one\ntwo\nthree\n", "two", "2", NULL, "one\n2\nthree\n"},
        {"one\ntwo\nthree\n", "one\ntwo\n", "", NULL, "three\n"},
        {"one\ntwo\nthree\n", "ne\ntw", "-", NULL, "o-o\nthree\n"},
        {"one", "one", "1\n2\n", NULL, "1\n2\n"},
        {"a\n\nb\n", "\n\n", "\n", NULL, "a\nb\n"},
        {"x  =  1  \n", "x  =  1  \n", "x = 1\n", NULL, "x = 1\n"},
        {"\t\tdeep\n", "\t\tdeep", "\tflat", NULL, "\tflat\n"},
        {"caf\xC3\xA9 au lait", "\xC3\xA9", "e", NULL, "cafe au lait"},
        {"it" APOS "s", "it" APOS "s", "it's", NULL, "it's"},
        {"\xFF\xFE raw", "\xFE", "bytes", NULL, "\xFF" "bytes raw"},
        {"    \n", "    ", "", NULL, "\n"},
        {"price $1", "$1", "$0\\1&", NULL, "price $0\\1&"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_uses_the_line_ends_of_the_file(void) {
    static const replace_case list[] = {
        {"one\r\ntwo\r\n", "one\ntwo\n", "1\n2\n3\n", NULL,
         "1\r\n2\r\n3\r\n"},
        {"one\ntwo\n", "one\r\ntwo\r\n", "1\r\n2\r\n", NULL, "1\n2\n"},
        {"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", NULL, "1\r\n2\r\n"},
        {"one\rtwo\rthree", "one\ntwo", "1\n1b\n2", NULL,
         "1\r1b\r2\rthree"},
        {"one\rtwo\r", "one\r\ntwo\r\n", "1\r\n2\r\n", NULL, "1\r2\r"},
        {"a\r\nb\nc\r\n", "b", "b1\nb2", NULL, "a\r\nb1\nb2\nc\r\n"},
        {"a\nb\r\nc\n", "b", "b1\nb2", NULL, "a\nb1\r\nb2\r\nc\n"},
        /* mixed inside the match: lines that stay keep theirs */
        {"a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nB\nc\n", NULL,
         "a\r\nB\r\nc\r\nd\n"},
        {"a\nb\r\nc\n", "a\nb\nc\n", "A\nb\nc\n", NULL, "A\nb\r\nc\n"},
        {"a\r\n\nb\r\n", "a\n\nb\n", "a\n\nB\n", NULL,
         "a\r\n\nB\r\n"},
        /* lines after the last old line end like the first */
        {"a \nb\r\n", "a\nb", "a\nb\nc", trailing, "a \nb\nc\r\n"},
        {"a \nb; c\r\n", "a\nb", "a\nb\nd", trailing,
         "a \nb\nd; c\r\n"},
        /* the last line has none: the file's first one */
        {"a\r\nb\nlast", "last", "x\ny", NULL, "a\r\nb\nx\r\ny"},
        /* none at all: as it was sent */
        {"only", "only", "x\ny\n", NULL, "x\ny\n"},
        {"only", "only", "x\r\ny\r\n", NULL, "x\r\ny\r\n"},
        {"only", "only ", "\nx", trailing, "\nx"},
        {"only", "only ", "\r\nx", trailing, "\r\nx"},
        {"only\ry", "only", "x\ry", NULL, "x\ry\ry"},
        /* a CR inside a line is no line's end when there are LFs */
        {"a\rb\nc\n", "a\rb", "z", NULL, "z\nc\n"},
        {"a\rb\nc\n", "a\nb", "z", NULL, NULL},
        /* half of a line end, as it is in the file */
        {"a\r\nb", "a\r", "c\r", NULL, "c\r\nb"},
        {"a\r\nb\r\n", "a\r\nb\r", "c\r", NULL, NULL},
        {"a \r\nb\r\n", "a\nb\n", "a\nc\n", trailing, "a \r\nc\r\n"},
        {"\ta\r\n\tb\r\n", "a\nb\n", "a\nx\nc\n", trimmed_put,
         "\ta\r\n\tx\r\n\tc\r\n"},
        {"\ta\r\tb\r", "a\nb\n", "a\nx\n", trimmed_put, "\ta\r\tx\r"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_forgives_a_missing_last_newline(void) {
    static const replace_case list[] = {
        {"a\nlast", "last\n", "end\n", NULL, "a\nend"},
        {"a\r\nlast", "last\n", "end\nmore\n", NULL, "a\r\nend\r\nmore"},
        {"a\nlast", "last\n", "end", NULL, "a\nend"},
        {"last", "last\n", "end\n", NULL, "end"},
        {"last", "last\n", "end\r\n", NULL, "end"},
        {"a\nlast", "a\nlast\n", "", NULL, ""},
        {"a\nlast", "a\nlast\n\n", "b\n", trimmed, "b"},
        {"a\nlast one", "last\n", "end\n", NULL, NULL},
        {"a\nlast  ", "last\n", "end\n", trailing, "a\nend"},
        {"a\nit" APOS "s", "it's\n", "was\n", unicode, "a\nwas"},
        {"x\na   b", "a b\n", "a c\n", runs, "x\na   c"},
        {"x\n\ta", "  a\n", "  b\n", trimmed_put, "x\n\tb"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_keeps_the_last_newline(void) {
    static const replace_case list[] = {
        /* old_str ends in a blank line that the file does not have */
        {"a\nb\n", "b\n\n", "c\n", NULL, "a\nc\n"},
        {"a\nb\n", "b\n\n", "c\n\n", NULL, "a\nc\n"},
        {"a\nb\n", "b\n\n", "c\n\n\n", NULL, "a\nc\n\n"},
        {"a\nb\n", "b\n\n", "c", NULL, "a\nc\n"},
        {"a\nb\n", "b\n\n", "", NULL, "a\n"},
        {"a\nb\n", "b\n\n", "\n", NULL, "a\n"},
        {"a\r\nb\r\n", "b\n\n", "c\nd", NULL, "a\r\nc\r\nd\r\n"},
        {"a\rb\r", "b\n\n", "c\n", NULL, "a\rc\r"},
        {"a\nb \n", "b\n\n", "c\n", trailing, "a\nc\n"},
        {"it" APOS "s x" APOS "\n", "it's x'\n\n", "it's y'\n", unicode,
         "it" APOS "s y" APOS "\n"},
        {"a\n  b\n", "\tb\n\n", "\tc\n", trimmed_put, "a\n  c\n"},
        /* and begins with one: none of them is the end of a line */
        {"a\nb\n", "\nb\n\n", "c\n", trimmed, "a\nc\n"},
        {"a\n\nb\n", "\nb\n\n", "c\n", trimmed, "a\n\nc\n"},
        {"a\nb\n", "\nb\n\n", "\nc\n\n", trimmed, "a\nc\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_strips_copied_line_numbers(void) {
    static const char both[] =
        "(matched after trimming trailing whitespace) "
        "(line-number prefixes removed)";
    static const char all_three[] =
        "(matched after trimming whitespace) (line-number prefixes removed) "
        "(new_str re-indented as the file is)";
    static const replace_case list[] = {
        {"f:\n  a\n  b\n", "2\t  a\n3\t  b\n", "2\t  A\n3\t  b\n", stripped,
         "f:\n  A\n  b\n"},
        {"f:\n  a\n  b\n", "2\t  a\n3\t  b\n", "  A\n  b\n", stripped,
         "f:\n  A\n  b\n"},
        {"f:\n  a\n", "     9|f:\n    10|  a\n", "f:\n  c\n", stripped,
         "f:\n  c\n"},
        {"f:\n  a\n", "1 | f:\n2 |   a\n", "1 | f:\n2 |   c\n", stripped,
         "f:\n  c\n"},
        {"f:\n  a\n", "1: f:\n2:   a\n", "g:\n", stripped, "g:\n"},
        {"f:\n\nb\n", "1 | f:\n2 |\n3 | b\n", "1 | b\n", stripped, "b\n"},
        {"f:\n  a\n", "7\xE2\x86\x92" "f:\n8\xE2\x86\x92  a\n", "g\n",
         stripped, "g\n"},
        {"f:  \n  a\n", "1\tf:\n2\t  a\n", "1\tf:\n2\t  c\n", both,
         "f:  \n  c\n"},
        {"\tf:\n\t\ta\n", "1\tf:\n2\t\ta\n", "1\tf:\n2\t\tc\n", all_three,
         "\tf:\n\t\tc\n"},
        /* an empty line whose separator was trimmed */
        {"a\n\nb\n", "1\ta\n2\n3\tb", "1\ta\n2\n3\tc", stripped,
         "a\n\nc\n"},
        {"a\n\nb\n", "   1\n   2\n   3\tb\n", "c\n", NULL, NULL},
        {"\n\nb\n", "   1\n   2\n   3\tb\n", "c\n", stripped, "c\n"},
        {"a\n\nb\n", "1 | a\n2\n3 | b\n", "7 | c\n8\n", stripped,
         "c\n\n"},
        {"a\n\nb\n", "1\ta\n3\n4\tb", "c", NULL, NULL},
        {"\nb\nc\n", "1\n2\tb\n9\tc\n", "x\n", NULL, NULL},
        {"1x\n2x\n", "1\n2\n", "c\n", NULL, NULL},
        /* not consecutive, not alike, not all: not a listing */
        {"f:\n  a\n", "1\tf:\n3\t  a\n", "g\n", NULL, NULL},
        {"f:\n  a\n", "1\tf:\n2|  a\n", "g\n", NULL, NULL},
        {"f:\n  a\n", "1\tf:\n  a\n", "g\n", NULL, NULL},
        /* new_str with some numbers only */
        {"f:\n  a\n", "1\tf:\n2\t  a\n", "1\tf:\n  b\n", NULL, NULL},
        /* the numbers are in the file */
        {"1\tone\n2\ttwo\n", "1\tone\n", "1\tuno\n", NULL,
         "1\tuno\n2\ttwo\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_ignores_blanks_at_the_end_of_lines(void) {
    static const replace_case list[] = {
        {"if x:   \n\tgo\t\nend\n", "if x:\n\tgo\n", "if x:\n\tstop\n",
         trailing, "if x:   \n\tstop\nend\n"},
        {"if x:\n\tgo\n", "if x:  \n\tgo \n", "if y:\n\tgo \n", trailing,
         "if y:\n\tgo\n"},
        {"a  \nb  \n", "a\nb", "a\nc", trailing, "a  \nc  \n"},
        {"a \n\nb\n", "a\n\nb\n", "a\n\n\nb\n", trailing, "a \n\n\nb\n"},
        /* a trimmed last line must end there */
        {"word wordy\n", "word \nwordy", "x", NULL, NULL},
        {"x = 1;\ny\n", "x = 1 \n", "x = 2 \n", NULL, NULL},
        {"x = 10\ny\n", "x = 1  ", "x = 2", NULL, NULL},
        {"x = 1   \ny\n", "x = 1 ", "x = 2", NULL, "x = 2  \ny\n"},
        {"x = 1\ny\n", "x = 1 ", "x = 2", trailing, "x = 2\ny\n"},
        {"  a\n  b  \n", "a\n  b\n", "A\n  b\n", trailing, "  A\n  b  \n"},
        {"a\n\t\nb\n", "a\n\nb\n", "a\n\nc\n", trailing, "a\n\t\nc\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_matches_look_alikes(void) {
    static const replace_case list[] = {
        {"say " LQUO "hi" RQUO "\n", "say \"hi\"", "say \"ho\"", unicode,
         "say " LQUO "ho" RQUO "\n"},
        {"it" APOS "s", "it's", "it was", unicode, "it was"},
        {"a" NBSP "b\n", "a b", "a b c", unicode, "a" NBSP "b c\n"},
        {"1 " EN_DASH " 2\n", "1 - 2", "1 - 3", unicode,
         "1 " EN_DASH " 3\n"},
        {"wait" ELLIPSIS "\n", "wait...", "wait... now", unicode,
         "wait" ELLIPSIS " now\n"},
        {"wait...\n", "wait" ELLIPSIS, "go" ELLIPSIS, unicode,
         "go...\n"},
        {"a" EM_DASH "b\n", "a-b", "a-c", unicode, "a" EM_DASH "c\n"},
        {"a" EM_DASH "b\n", "a--b", "a--c", unicode, "a" EM_DASH "c\n"},
        {"a--b\n", "a" EM_DASH "b", "x", unicode, "x\n"},
        {"no" ZWSP "thing\n", "nothing", "no thing", unicode,
         "no thing\n"},
        {"no" WJ "thing\nx\n", "nothing\nx", "nothing\ny", unicode,
         "no" WJ "thing\ny\n"},
        {"nothing\nx\n", "no" WJ "thing\nx", "no" WJ "thing\ny", unicode,
         "nothing\ny\n"},
        /* a joiner may mean something */
        {"no" ZWJ "thing\n", "nothing", "no thing", NULL, NULL},
        {"thin\xE2\x80\x89sp\xE3\x80\x80id\n", "thin sp id", "thin sp ID",
         unicode, "thin\xE2\x80\x89sp\xE3\x80\x80ID\n"},
        {"minus \xE2\x88\x92" "1\n", "minus -1", "minus -2", unicode,
         "minus \xE2\x88\x92" "2\n"},
        {"nothing\n", "no" WJ "thing", "NO" WJ "thing", unicode,
         "NOthing\n"},
        {"x" APOS APOS "\n", "x''", "x'''", unicode,
         "x" APOS APOS "'\n"},
        {"x" NBSP "y\n", "x y", "x  y", unicode, "x" NBSP " y\n"},
        {"it" APOS "s \xC3\xA9 x\n", "it's \xC3\xA9 x", "it's \xC3\xA8 x",
         unicode, "it" APOS "s \xC3\xA8 x\n"},
        {"it" APOS "s \xC3\xA9\n", "it's \xC3\xA9", "it's \xC5\xA9",
         unicode, "it" APOS "s \xC5\xA9\n"},
        /* more lines: the first keeps its head, the last its tail */
        {"it" APOS "s a\nsay " APOS "b" APOS "\n", "it's a\nsay 'b'\n",
         "it's 1\nit's\nsay '2'\n", unicode,
         "it" APOS "s 1\nit's\nsay '2" APOS "\n"},
        {"it" APOS "s a\n" APOS "b" APOS "\n", "it's a\n'b'\n",
         "it's 1\nmid\nx 'b'\n", unicode,
         "it" APOS "s 1\nmid\nx " APOS "b" APOS "\n"},
        /* lines that are the same keep the file's bytes */
        {LQUO "a" RQUO "\nb\n" LQUO "c" RQUO "\n",
         "\"a\"\nb\n\"c\"\n", "\"a\"\nB\n\"c\"\n", unicode,
         LQUO "a" RQUO "\nB\n" LQUO "c" RQUO "\n"},
        /* with blanks at a line's end */
        {"it" APOS "s  \nok\n", "it's\nok", "it's\nko", unicode,
         "it" APOS "s  \nko\n"},
        /* an expanded character is not split */
        {"wait" ELLIPSIS "x\n", "wait.", "stop.", NULL, NULL},
        {"a" EM_DASH "b\n", "-b", "+b", unicode, "a+b\n"},
        /* no case folding, no compatibility forms */
        {"HELLO\n", "hello", "x", NULL, NULL},
        {"\xEF\xBC\x81\n", "!", "x", NULL, NULL},
        {"\xEF\xAC\x81x\n", "fix", "x", NULL, NULL},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_ignores_the_length_of_blank_runs(void) {
    static const replace_case list[] = {
        {"int   a  = 1;\n", "int a = 1;", "int a = 2;", runs,
         "int   a  = 2;\n"},
        {"int a = 1;\n", "int  a  =  1;", "int  b  =  1;", runs,
         "int b = 1;\n"},
        {"x\t=\t1\n", "x = 1", "x = 10", runs, "x\t=\t10\n"},
        {"k:  v  # c\n", "k: v # c\n", "k: w # c\n", runs,
         "k:  w  # c\n"},
        {"    f(a,  b)\n", "    f(a, b)\n", "    f(a, c)\n", runs,
         "    f(a,  c)\n"},
        /* a run may not appear or vanish */
        {"f(a,b)\n", "f(a, b)", "x", NULL, NULL},
        {"f(a, b)\n", "f(a,b)", "x", NULL, NULL},
        /* in the middle of a line */
        {"y; int   a; z\n", "int a;", "int b;", runs, "y; int   b; z\n"},
        {"x   =  2;\n", " = 2", " = 3", runs, "x   =  3;\n"},
        {"\tx   =  2;\n", " = 2", " = 3", runs, "\tx   =  3;\n"},
        {"\t  a   b\n", "  a b", "  a c", runs, "\t  a   c\n"},
        {"   a   b\n", "  a b", "  a c", runs, "   a   c\n"},
        /* a run that changes is as new_str has it */
        {"a   b;\n", "a b;", "a  b;", runs, "a  b;\n"},
        {"a   b;\n", "a b;", "a\tb;", runs, "a\tb;\n"},
        {"a   b\n", "a" NBSP "b", "a" NBSP " b", runs, "a" NBSP " b\n"},
        {"a   b\n", "a b", "a  ", runs, "a  \n"},
        {"a   b\n", "a b", "a", runs, "a\n"},
        {"a   b\n", "a b", "b", runs, "b\n"},
        /* with a look-alike and blanks at the end */
        {"it" APOS "s  a " NBSP "b \n", "it's a b\n", "it's a c\n", runs,
         "it" APOS "s  a " NBSP "c\n"},
        {"a  " EM_DASH "  b\n", "a -- b", "a -- c", runs,
         "a  " EM_DASH "  c\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_indents_new_text_as_the_file_is(void) {
    static const replace_case list[] = {
        /* a prefix more, a prefix less */
        {"class A:\n    def f(self):\n        return 1\n",
         "def f(self):\n    return 1\n",
         "def f(self):\n    x = 2\n    return x\n", trimmed_put,
         "class A:\n    def f(self):\n        x = 2\n        return x\n"},
        {"def f():\n    return 1\n", "    def f():\n        return 1\n",
         "    def f():\n        return 2\n", trimmed_put,
         "def f():\n    return 2\n"},
        {"\t\tif a:\n\t\t\tb\n", "if a:\n\tb\n", "if a:\n\tc\n",
         trimmed_put, "\t\tif a:\n\t\t\tc\n"},
        /* tabs and spaces */
        {"\tif a:\n\t\tb\n", "    if a:\n        b\n",
         "    if a:\n        c\n            d\n", trimmed_put,
         "\tif a:\n\t\tc\n\t\t\td\n"},
        {"\tif a:\n\t\tb\n", "  if a:\n    b\n", "  if a:\n    c\n",
         trimmed_put, "\tif a:\n\t\tc\n"},
        {"\tif a:\n\t\tb\n", "   if a:\n      b\n", "   if a:\n      c\n",
         trimmed_put, "\tif a:\n\t\tc\n"},
        {"\tif a:\n\t\tb\n", "        if a:\n                b\n",
         "        if a:\n                c\n", trimmed_put,
         "\tif a:\n\t\tc\n"},
        {"    if a:\n        b\n", "\tif a:\n\t\tb\n", "\tif a:\n\t\tc\n",
         trimmed_put, "    if a:\n        c\n"},
        {"  if a:\n    b\n", "    if a:\n        b\n",
         "    if a:\n        c\n", trimmed_put, "  if a:\n    c\n"},
        /* another unit, and levels shifted */
        {"\t\tif a:\n\t\t\tb\n", "    if a:\n        b\n",
         "    if a:\n        c\n", trimmed_put, "\t\tif a:\n\t\t\tc\n"},
        {"\tif a:\n\t\tb\n", "if a:\n  b\n", "if a:\n  c\n    d\n",
         trimmed_put, "\tif a:\n\t\tc\n\t\t\td\n"},
        /* lines that stay keep their bytes, blank ones too */
        {"\ta  \n\t\n\tb\n", "a\n\nb\n", "a\n\nc\n", trimmed_put,
         "\ta  \n\t\n\tc\n"},
        {"\ta\n\tb\n", "a\nb\n", "b\n", trimmed, "\tb\n"},
        /* irregular, but clear line by line */
        {" a\n    b\n  c\n", "a\nb\nc\n", "a\nB\nc\n", trimmed_put,
         " a\n    B\n  c\n"},
        {" a\n    b\n  c\n", "a\nb\nc\n", "A\nB\nC\n", trimmed_put,
         " A\n    B\n  C\n"},
        {" a\n    b\n  c\n", "a\nb\nc\n", "a\nc\n", trimmed,
         " a\n  c\n"},
        /* an empty new line has no indentation */
        {"\ta\n\tb\n", "a\nb\n", "a\n\nc\n", trimmed_put, "\ta\n\n\tc\n"},
        /* no last newline in old_str: whole lines all the same */
        {"  x\n  y\nz\n", "\tx\n\ty", "\tx\n\tw", trimmed_put,
         "  x\n  w\nz\n"},
        /* look-alikes count as their ASCII characters */
        {"\tsay(" LQUO "a" RQUO ")\n\tb\n", "say(\"a\")\nb\n",
         "say(\"a\")\nc\n", trimmed_put,
         "\tsay(" LQUO "a" RQUO ")\n\tc\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_counts_depth_from_the_margin(void) {
    static const replace_case list[] = {
        /* the indentation is the same: every depth is clear */
        {"if x:\n    a()\n    b()\n", "\n    a()\n\n",
         "\n    a()\nelse:\n  c()\n\n", trimmed,
         "if x:\n    a()\nelse:\n  c()\n    b()\n"},
        /* tabs for spaces: a shallower line, too */
        {"switch k {\n\tcase a:\n\t\tgo()\n}\n", "        go()",
         "        go()\n    case b:\n        come()\n// end", trimmed_put,
         "switch k {\n\tcase a:\n\t\tgo()\n\tcase b:\n\t\tcome()\n"
         "// end\n}\n"},
        {"x\na\nb\ny\n", "\na\nb\n\n", "\n  a\n  b\nc\n\n", trimmed,
         "x\n  a\n  b\nc\ny\n"},
        {"\ta\n\t\tb\n", "    a\n        b\n",
         "        a\n            b\n    c\n", trimmed_put,
         "\t\ta\n\t\t\tb\n\tc\n"},
        {"def f():\n    a\n", "\ta\n", "\ta\n\ndef g():\n\t\tb\n",
         trimmed_put, "def f():\n    a\n\ndef g():\n        b\n"},
        /* a new line that is indented like the file */
        {"\ta\n", "    a\n", "    a\n\t\tb\n", trimmed, "\ta\n\t\tb\n"},
        {"a\n  b\n    c\n", "a\n    b\n        c\n",
         "a\n    b\n            d\n", trimmed_put, "a\n  b\n      d\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_keeps_lines_that_are_indented_otherwise(void) {
    static const replace_case list[] = {
        /* tabs for spaces on some lines */
        {"\ta\n\tb\n\tc\n", "\ta\n    b\n\tc\n",
         "\ta\n    b\n\t\tx\n\tc\n", trimmed,
         "\ta\n\tb\n\t\tx\n\tc\n"},
        {"\ta\n\tb\n\tc\n", "\ta\n    b\n\tc\n",
         "\ta\n    b\n        x\n    y\n\tc\n", trimmed_put,
         "\ta\n\tb\n\t\tx\n\ty\n\tc\n"},
        {"    a\n    b\n", "    a\n\tb\n", "        x\n    a\n\t\ty\n\tb\n",
         trimmed_put, "        x\n    a\n        y\n    b\n"},
        /* one line a blank or two off */
        {"f:\n    a\n    b\n    c\n", "f:\n    a\n      b\n    c\n",
         "f:\n    a\n      b\n    x\n        y\n    c\n", trimmed,
         "f:\n    a\n    b\n    x\n        y\n    c\n"},
        {"f:\n    a\n    b\n", "    a\n   b\n", "    x\n    a\n   b\n",
         trimmed, "f:\n    x\n    a\n    b\n"},
        /* a line off by a level, new lines elsewhere */
        {"{\n  a\n  b\n}\nc\n", "{\n    a\n  b\n}\nc\n",
         "{\n    a\n  b\n}\nx\n  y\n    z\nc\n", trimmed,
         "{\n  a\n  b\n}\nx\n  y\n    z\nc\n"},
        {"  a\n    b\n  c\n  d\n", "  a\n  b\n  c\n  d\n",
         "  a\n  b\n  c\n  x\n  d\n", trimmed,
         "  a\n    b\n  c\n  x\n  d\n"},
        {"  a\n  b\n    c\n  d\n", "  a\n  b\n  c\n  d\n",
         "  A\n  b\n  c\n  d\n", trimmed, "  A\n  b\n    c\n  d\n"},
        /* nor is a line out of its block in doubt */
        {"{\n  a\n    b\n  c\n}\n", "{\n  a\n  b\n  c\n}\n",
         "{\n  a\n  x\nz\n      y\n  b\n  c\n}\n", trimmed,
         "{\n  a\n  x\nz\n      y\n    b\n  c\n}\n"},
        /* a changed line takes the place of its old line */
        {"x\n    a\n        b\n        c\n",
         "    a\n            b\n            c\n",
         "    a\n            B\n            c\n", trimmed_put,
         "x\n    a\n        B\n        c\n"},
        {"a\n  b\n", "a\n    b\n", "a\n    B\n", trimmed_put,
         "a\n  B\n"},
        {"  a\n    b\n  c\n", "  a\n  b\n  c\n", "  a\n  B\n  c\n",
         trimmed_put, "  a\n    B\n  c\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_deletes_whole_lines(void) {
    static const replace_case list[] = {
        {"  a\n  b\n  c\n", "\tb\n", "", trimmed, "  a\n  c\n"},
        {"  a\n  b\n  c\n", "\tb", "", trimmed, "  a\n  c\n"},
        {"  a\n\n  b\n", "\ta\n", "", trimmed, "\n  b\n"},
        {"  a\n\n  b\n", "\ta", "", trimmed, "\n  b\n"},
        {"  a\r\n  b\r\n", "\ta", "", trimmed, "  b\r\n"},
        {"  a\r  b\r", "\ta", "", trimmed, "  b\r"},
        {"  a\n  b", "\tb\n", "", trimmed, "  a\n"},
        {"  a\n\n  b\n", "\ta\n\n", "", trimmed, "  b\n"},
        /* an exact match: only the named bytes */
        {"a\nb\nc\n", "b", "", NULL, "a\n\nc\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_drops_blank_lines_at_the_edges(void) {
    static const replace_case list[] = {
        {"x\n  a\n  b\ny\n", "\n  a\n  b\n\n", "\n  a\n  c\n\n", trimmed,
         "x\n  a\n  c\ny\n"},
        {"x\n  a\n  b\ny\n", "\n\n  a\n  b\n", "  a\n  c\n", trimmed,
         "x\n  a\n  c\ny\n"},
        {"x\n\ta\n\tb\ny\n", "\na\nb\n\n", "\na\nc\n\n", trimmed_put,
         "x\n\ta\n\tc\ny\n"},
        {"x\n\ta\n\tb\ny\n", NBSP "\na\nb\n", "a\nc\n", trimmed_put,
         "x\n\ta\n\tc\ny\n"},
        {"x\n\ta\n\tb\ny\n", ZWSP "\na\nb\n", ZWSP "\na\nc\n",
         trimmed_put, "x\n\ta\n\tc\ny\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_combines_runs_and_indentation(void) {
    static const replace_case list[] = {
        {"\ta  =  1\n\tb\n", "a = 1\nb\n", "a = 1\nc\n", trimmed_put,
         "\ta  =  1\n\tc\n"},
        {"\ta  =  1  \n", "  a = 1\n", "  a = 2\n", trimmed_put,
         "\ta = 2\n"},
        /* not with look-alikes */
        {"\tit" APOS "s  x\n\tz\n", "it's x\nz\n", "y\n", NULL, NULL},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_ignores_blank_lines_inside(void) {
    static const replace_case list[] = {
        /* missing or added: between unchanged lines the file's stay */
        {"a\n\nb\nc\n", "a\nb\nc\n", "a\nb\nd\n", but_blank,
         "a\n\nb\nd\n"},
        {"a\nb\nc\n", "a\n\nb\nc\n", "a\n\nb\nd\n", but_blank,
         "a\nb\nd\n"},
        {"a\n\n \nb\nc\n", "a\n\nb\nc", "a\n\nb\nd", but_blank,
         "a\n\n \nb\nd\n"},
        {"a\r\n\r\nb\r\nc\r\n", "a\nb\nc\n", "a\nb\nd\ne\n",
         but_blank, "a\r\n\r\nb\r\nd\r\ne\r\n"},
        {"a\r\rb\rc\r", "a\nb\nc\n", "a\nb\nd\n", but_blank,
         "a\r\rb\rd\r"},
        {"a\n\nb\nc", "a\nb\nc\n", "a\nb\nd\n", but_blank,
         "a\n\nb\nd"},
        /* also next to a changed line, if the blank lines did not change */
        {"a\n\nb\nc\n", "a\nb\nc\n", "A\nb\nc\n", but_blank,
         "A\n\nb\nc\n"},
        {"a\n\nb\nc\n", "a\nb\nc\n", "a\nB\nc\n", but_blank,
         "a\n\nB\nc\n"},
        /* blank lines that old_str has right may change */
        {"a\n\nb\nc\n\nd\n", "a\nb\nc\n\nd\n", "a\nb\nc\nd\n",
         but_blank, "a\n\nb\nc\nd\n"},
        {"a\n\nb\nc\n \nd\n", "a\nb\nc\n\nd\n", "a\nb\nc\n\nD\n",
         but_blank, "a\n\nb\nc\n \nD\n"},
        /* lines put in where one side is as before, the other as the file */
        {"a\n\n\nb\n", "a\n\nb\n", "a\n\nx\n\n\nb\n", but_blank,
         "a\n\n\nx\n\n\nb\n"},
        {"a\n\n\nb\n", "a\n\nb\n", "a\n\n\nx\n\nb\n", but_blank,
         "a\n\n\nx\n\n\nb\n"},
        /* lines taken out, put before and after */
        {"a\n\nb\nc\nd\n", "a\nb\nc\nd\n", "a\nb\nd\n", but_blank,
         "a\n\nb\nd\n"},
        {"a\n\nb\n", "a\nb\n", "x\n\na\nb\n\ny\n", but_blank,
         "x\n\na\n\nb\n\ny\n"},
        {"a\n\nb\n", "a\nb\n", "\n \na\nb\nc\n", but_blank,
         "\n \na\n\nb\nc\n"},
        {"x\na\n\nb\ny\n", "a\nb\n", "", but_blank, "x\ny\n"},
        {"a\n\nb\nz\n", "a\nb\n", "a\nb\n \n", but_blank,
         "a\n\nb\n \nz\n"},
        {"a\n\nb\nc\n", "a\nb\nc\n", "a\nb\nx\nc\n", but_blank,
         "a\n\nb\nx\nc\n"},
        {"a\n\nb\n\nc\n", "a\nb\n\nc\n", "a\nb\n\nx\n\n\nc\n", but_blank,
         "a\n\nb\n\nx\n\n\nc\n"},
        /* with another indentation, and blank lines at the edges */
        {"x\n\ta\n\n\tb\ny\n", "\na\nb\n\n", "\na\nb\nc\n\n",
         "(matched but for blank lines) (new_str re-indented as the file is)",
         "x\n\ta\n\n\tb\n\tc\ny\n"},
        {"x\n\na\n\nb\n\ny\n", "\na\nb\n\n", "\na\nc\n\n", but_blank,
         "x\n\na\n\nc\n\ny\n"},
        /* other lines must be all there */
        {"a\n\nx\nb\n", "a\nb\n", "c\n", NULL, NULL},
        {"a\n\nb c\n", "a\nb\n", "c\n", NULL, NULL},
        {"za\n\nb\n", "a\nb\n", "c\n", NULL, NULL},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_keeps_any_number_of_blank_lines(void) {
    hfsb_buf  file = HFSB_INIT, want = HFSB_INIT;
    hfsb_edit edit = te_make("a\nb\n", "a\nb\nc\n");
    te_run    run;
    t_repeat(&file, "a", 1);
    t_repeat(&file, "\n", 1000);
    t_repeat(&file, "b\n", 1);
    te_append(&want, hfsb_buf_str(&file));
    te_append(&want, HFSB_LIT("c\n"));
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    check_result(&run, 0, but_blank, want.ptr);
    te_free(&run);
    hfsb_buf_free(&file);
    hfsb_buf_free(&want);
}

static void edit_strips_code_fences(void) {
    static const char fenced_trail[] =
        "(matched after trimming trailing whitespace) "
        "(code fences removed)";
    static const replace_case list[] = {
        {"x\n  a\ny\n", "```c\n  a\n```", "```c\n  b\n  c\n```", unfenced,
         "x\n  b\n  c\ny\n"},
        {"x\n  a\ny\n", "```\n  a\n```\n", "```\n  b\n```", unfenced,
         "x\n  b\ny\n"},
        {"x\na\ny\n", "~~~~ c\na\n~~~~", "~~~~ c\nb\n~~~~", unfenced,
         "x\nb\ny\n"},
        {"x\na \nz\n", "```\na\nz\n```", "```\na\nb\n```", fenced_trail,
         "x\na \nb\n"},
        {"x\na\ny\n", "```\na\n```", "```\n```", unfenced, "x\ny\n"},
        {"x\na\ny\n", "```\na\n```", "```\n\n```", unfenced, "x\ny\n"},
        {"x\na\n\ny\n", "```\na\n\n```", "```\n\n```", unfenced,
         "x\n\ny\n"},
        {"x\na", "```\na\n```", "```\nb\n```", unfenced, "x\nb"},
        /* the fences of a Markdown file are found with it */
        {"```c\na\n```\na\n", "```c\na\n```", "```c\nb\n```", NULL,
         "```c\nb\n```\na\n"},
        {"- x\n  ```c\n  a\n  ```\na\n", "```c\na\n```",
         "```c\nb\nc\n```", trimmed_put,
         "- x\n  ```c\n  b\n  c\n  ```\na\n"},
        /* both, alike, closed at the end, whole lines */
        {"a\n", "```c\na\n```", "b\n", NULL, NULL},
        {"a\n", "```c\na\n```", "```\nb\n```", NULL, NULL},
        {"a\n", "```c\na\n", "```c\nb\n", NULL, NULL},
        {"a\n", "```c\na\n```\nx", "```c\nb\n```\nx", NULL, NULL},
        {"a\n", "``\na\n``", "``\nb\n``", NULL, NULL},
        {"a\n", "```c`\na\n```", "```c`\nb\n```", NULL, NULL},
        {"a\n", "```\na\n~~~", "```\nb\n~~~", NULL, NULL},
        {"a\n", "````\na\n```", "````\nb\n```", NULL, NULL},
        {"a\n", "```\n```", "```\nb\n```", NULL, NULL},
        {"  a\n", "```\na\n```", "```\nb\nc\n```", NULL, NULL},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_matches_blank_lines_as_lines(void) {
    static const replace_case list[] = {
        /* nothing after the last newline is no line */
        {"    x = 1\n    \n    y = 2\n", "    x = 1\n\n", "    x = 1\n",
         trailing, "    x = 1\n    y = 2\n"},
        {"if a:\n\tx = 1\n\t\n\ty = 2\n", "    x = 1\n\n", "    x = 1\n",
         trimmed, "if a:\n\tx = 1\n\ty = 2\n"},
        {"            foo()\n", "\tfoo()", "\tx()\n", trimmed_put,
         "            x()\n\n"},
        /* a blank first line is the file's blank line, with its blanks */
        {"\t\nfoo\n", "\t\nfoo ", "\tbar\nfoo ", trailing,
         "\tbar\nfoo\n"},
        {"x\n  \nfoo\n", "\t\nfoo  \n", "bar\n", trailing, "x\nbar\n"},
        {"x\n  \nfoo  ", "\t\nfoo\n", "bar\n", trailing, "x\nbar"},
        {"x\n  \n  a\n", "  \n  a \n", "  b\n  \n  a \n", trailing,
         "x\n  b\n  \n  a\n"},
        /* and never the end of a line with something on it */
        {"def f():\n    a\n", "    \n    a\n", "    b\n", trimmed,
         "def f():\n    b\n"},
        /* whole lines keep their newline */
        {"x\n  foo\nnext\n", "\tfoo\n", "\tbar", trimmed_put,
         "x\n  bar\nnext\n"},
        {"a\nb\r\n", "\na\nb\n", "\na\nb\nc", trimmed,
         "a\nb\r\nc\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_keeps_data_that_starts_with_numbers(void) {
    static const replace_case list[] = {
        {"1\talice\n2\tbob \n3\tcarol\n", "2\tbob\n", "", trailing,
         "1\talice\n3\tcarol\n"},
        {"x = {1:  \"a\", 2: \"b\"}", "1: \"a\"", "one: \"a\"", runs,
         "x = {one:  \"a\", 2: \"b\"}"},
        {"ports:\n  80:  http\n", "80: http", "8080: http", runs,
         "ports:\n  8080:  http\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_keeps_file_bytes_only_where_texts_agree(void) {
    static const replace_case list[] = {
        {"a  b  \n", "a b\n", "a b + c\n", runs, "a  b + c\n"},
        {LQUO "a" RQUO "  \n", "\"a\"\n", "\"a\";\n", unicode,
         LQUO "a" RQUO ";\n"},
        {"a  b\n", "a b\n    ", "a b\n    c", runs, "a  b\n    c"},
        {"\n\ta  b\n", "\t\n\ta b", "\tx\n\ta b", runs,
         "\tx\n\ta  b\n"},
        {"a  b\n  \n", "a b\n    \n", "a b\n    c\n", runs,
         "a  b\n    c\n"},
        {"a  b\t\n", "a b\t\n", "a b\n", runs, "a  b\n"},
        {"x  y\n\t\nz\n", "x y\n\n", "x y\nfoo\n", runs,
         "x  y\nfoo\nz\n"},
        {"a - b\t\n", "a  - b\t\n", "a  - Z\t\n", runs, "a - Z\t\n"},
        {"a\xE2\x80\x8B" "b\n", "ab", "a\xE2\x80\x8B" "b\nc", unicode,
         "a\xE2\x80\x8B" "b\nc\n"},
        /* one indentation that became another is looked up */
        {"\t\t\tfoo()\n\t\t\tbar()\n", "    foo()\n    bar()",
         "    foo()\n    x()\n    bar()", trimmed_put,
         "\t\t\tfoo()\n\t\t\tx()\n\t\t\tbar()\n"},
        {"end", "end  ", "end\r\nfoo()", trailing, "end\r\nfoo()"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_leaves_the_byte_order_mark_alone(void) {
    static const replace_case list[] = {
        {BOM "one\ntwo\n", "one\n", "1\n", NULL, BOM "1\ntwo\n"},
        {BOM "one\ntwo\n", BOM "one\n", "1\n", NULL, "1\ntwo\n"},
        {BOM "\tone\n", "one\n", "1\n", NULL, BOM "\t1\n"},
        {BOM "\tone\n\ttwo\n", "one\ntwo\n", "one\n2\n", trimmed_put,
         BOM "\tone\n\t2\n"},
        {BOM, "", "text\n", NULL, BOM "text\n"},
        {"", "", "text\n", NULL, "text\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

static void edit_accepts_any_bytes(void) {
    hfsb_str  content = HFSB_LIT("a\0b\n\0\0c\n");
    hfsb_edit edit = HFSB_INIT;
    te_run    run;
    edit.old_str = HFSB_LIT("\0b");
    edit.new_str = HFSB_LIT("\xFF\0");
    run = te_edits(content, &edit, 1, NULL);
    T_CHECK(run.st == HFSB_OK);
    T_STR(run.out, "a\xFF\0\n\0\0c\n");
    te_free(&run);
    edit.old_str = HFSB_LIT("\0");
    run = te_edits(content, &edit, 1, NULL);
    T_CHECK(run.st == HFSB_AMBIGUOUS);
    te_free(&run);
    edit.replace_all = true;
    edit.new_str = HFSB_LIT("");
    run = te_edits(content, &edit, 1, NULL);
    T_CHECK(run.st == HFSB_OK && run.r.count == 3);
    T_STR(run.out, "ab\nc\n");
    te_free(&run);
}

static void edit_accepts_dots_that_are_code(void) {
    static const replace_case list[] = {
        {"f()\n", "f()", "...", NULL, "...\n"},
        {"f()\n", "f()", "def g(): ...", NULL, "def g(): ...\n"},
        {"f()\n", "f()", "print(\"... existing code ...\")", NULL,
         "print(\"... existing code ...\")\n"},
        {"f()\n", "f()", "x = rest(...args)", NULL, "x = rest(...args)\n"},
        {"f()\n", "f()", "// see below...", NULL, "// see below...\n"},
        {"f()\n", "f()", "# loading...", NULL, "# loading...\n"},
        {"f()\n", "f()", "// existing code", NULL, "// existing code\n"},
        {"f()\n", "f()", "# other imports", NULL, "# other imports\n"},
        {"f()\n", "f()", "// rest of the line", NULL,
         "// rest of the line\n"},
        {"f()\n", "f()", "existing code here", NULL, "existing code here\n"},
        {"f()\n", "f()", "// the rest is padding", NULL,
         "// the rest is padding\n"},
        {"f()\n", "f()", "# rest here", NULL, "# rest here\n"},
        {"f()\n", "f()", "// rest unchanged if zero", NULL,
         "// rest unchanged if zero\n"},
        {"f()\n", "f()", "// checks omitted for brevity", NULL,
         "// checks omitted for brevity\n"},
        {"f()\n", "f()", "x = rest  # other tests unchanged", NULL,
         "x = rest  # other tests unchanged\n"},
        {"f()\n", "f()", "// other code (see below) ...", NULL,
         "// other code (see below) ...\n"},
        {"f()\n", "f()", "// add code ...", NULL, "// add code ...\n"},
        {"f()\n", "f()", "// other things ...", NULL,
         "// other things ...\n"},
        {"f()\n", "f()", "// a b c d e f g h i j k unchanged m ...", NULL,
         "// a b c d e f g h i j k unchanged m ...\n"},
        /* in the file, in another place or with other blanks */
        {"// existing code here \nf()\n", "f()", "  // existing code here",
         NULL, "// existing code here \n  // existing code here\n"},
        {"f()\n\t// existing code here", "f()", "// existing code here", NULL,
         "// existing code here\n\t// existing code here"},
        /* dots inside a longer comment */
        {"f()\n", "f()", "// for example:\n// ...", NULL,
         "// for example:\n// ...\n"},
        {"f()\n", "f()", "# ...\n# and so on", NULL, "# ...\n# and so on\n"},
        {"f()\n", "f()", "//   ...", NULL, "//   ...\n"},
        {"f()\n", "f()", "/// ...", NULL, "/// ...\n"},
        {"f()\n", "f()", "// wait... and then go on with 2 more", NULL,
         "// wait... and then go on with 2 more\n"},
        {"a\r  // ... existing code ...\rb\r", "b",
         "c\n// ... existing code ...", NULL,
         "a\r  // ... existing code ...\rc\r// ... existing code ...\r"},
        {"a\n// ... existing code ...\n", "a\n// ... existing code ...\n",
         "b\n// ... existing code ...\n", NULL,
         "b\n// ... existing code ...\n"},
    };
    check_replacements(list, TE_COUNT(list));
}

/* ---- memory ---- */

static const replace_case *oom_case;
static size_t              oom_count;
static hfsb_edit_mode      oom_mode;
static bool                oom_all;
static hfsb_status         oom_want; /* without a failing allocation */

static void oom_run(hfsb_alloc alloc, const t_heap *heap) {
    static hfsb_edit edits[8];
    hfsb_buf         out = HFSB_INIT;
    hfsb_edit_result r;
    hfsb_err         err;
    hfsb_status      st;
    size_t           i;
    for (i = 0; i < oom_count; i++) {
        edits[i] = te_make(oom_case[i].old_str, oom_case[i].new_str);
        edits[i].mode = oom_mode;
        edits[i].replace_all = oom_all;
    }
    out.alloc = alloc;
    st = hfsb_buf_append(&out, HFSB_LIT("kept"));
    if (st == HFSB_OK) {
        st = hfsb_edit_apply(hfsb_cstr(oom_case->content), edits, oom_count,
                             NULL, &out, &r, &err);
        T_CHECK(err.code == st);
        if (!heap->fail_at) oom_want = st;
        T_CHECK(st == oom_want || st == HFSB_NOMEM);
        T_CHECK(heap->fail_at || (st == HFSB_OK) == (oom_case->result != 0));
        T_CHECK(!heap->fail_at || st != HFSB_OK || oom_case->result);
        if (st == HFSB_OK) {
            T_CHECK(te_same(&out, hfsb_cstr(oom_case->result)));
            hfsb_edit_result_free(&r);
        } else {
            T_STR(out, "kept");
            T_CHECK(!r.count && !r.spans && !r.diff.ptr);
            T_CHECK(te_refusal_holds(st, &err));
        }
    }
    hfsb_buf_free(&out);
}

static void edit_survives_each_failing_allocation(void) {
    static const replace_case list[] = {
        {"a\nb\n", "b", "c", NULL, "kepta\nc\n"},
        {"a\r\nb\nc\r\n", "a\nb\n", "a\nB\n", NULL, "kepta\r\nB\r\nc\r\n"},
        {"a\nb", "b\n", "c\n", NULL, "kepta\nc"},
        {"a\nb\n", "1\ta\n2\tb\n", "1\ta\n2\tc\n", NULL, "kepta\nc\n"},
        {"a \nb\n", "a\nb\n", "a\nc\n", NULL, "kepta \nc\n"},
        {"it" APOS "s x\n", "it's x", "it's y", NULL, "keptit" APOS "s y\n"},
        {"a" EM_DASH "b\n", "a--b", "a--c", NULL, "kepta" EM_DASH "c\n"},
        {"k  = v\n", "k = v", "k = w", NULL, "keptk  = w\n"},
        {"\ta\n\tb\n", "a\nb\n", "a\nc\n", NULL, "kept\ta\n\tc\n"},
        {"\ta\n\tb\n", "\na\nb\n\n", "\na\nc\n\n", NULL,
         "kept\ta\n\tc\n"},
        {"\ta  1\n\tb\n", "a 1\nb\n", "a 1\nc\n", NULL,
         "kept\ta  1\n\tc\n"},
        {"a\n\nb\nc\n", "a\nb\nc\n", "a\nb\nd\n", NULL,
         "kepta\n\nb\nd\n"},
        {"a\n", "```\na\n```", "```\nb\n```", NULL, "keptb\n"},
        {"\ta\n\tb\n", "\ta\n    b\n", "\ta\n    b\n\tx\n", NULL,
         "kept\ta\n\tb\n\tx\n"},
        {"x" ZWJ "\n\tab\n", "  ab\n", "  c\n", NULL,
         "keptx" ZWJ "\n\tc\n"},
        /* with more changes than the first block has room for */
        {APOS APOS APOS APOS APOS APOS APOS APOS APOS APOS APOS APOS APOS APOS
             APOS APOS APOS APOS "a\n",
         "''''''''''''''''''a", "b", NULL, "keptb\n"},
        {"", "", "text\n", NULL, "kepttext\n"},
        {"    a;\n}\n", "  a;\n", "  a;\n  b;", NULL,
         "kept    a;\n    b;\n}\n"},
        /* refusals */
        {"alpha\nbeta\n", "alpha\nbett\n", "x", NULL, NULL},
        {"one\ntwo\nthree\n", "one\nthree\n", "x", NULL, NULL},
        {"a a\n", "a", "b", NULL, NULL},
        {"a\nb\na\nb\n", "a\nb\n", "b", NULL, NULL},
        {"a\n", "a", "a", NULL, NULL},
        {"a\n", "", "b", NULL, NULL},
        {"f();\n", "f();", "// ... existing code ...", NULL, NULL},
        {"f();\n", "f();\\n", "g();\\n", NULL, NULL},
        {"a\r\nsay(all);\r\n", "say(\\\"all\\\");", "x", NULL, NULL},
        {"one();\ntwo();\n", "```\none();\ntwo();\n```\n", "x", NULL, NULL},
        {"it" APOS "s known\n", "it's knwon\n", "x", NULL, NULL},
        {"compute_it();\n", "compute_ti();\n", "x", NULL, NULL},
        {" a\n    b\n  c\n", "a\nb\nc\n", "a\nx\nb\nc\n", NULL, NULL},
        {"a\n\nb\n", "a\nb\n", "a\nx\nb\n", NULL, NULL},
        {"\ta\n\tb\n", "a\nb\n", "  a\n  b\nc\n", NULL, NULL},
        {"  a" ZWJ "b\n\tab\n", "  ab\n", "c\n", NULL, NULL},
        {"#a\n#include <b.h>\n", "#a\n", "#a\n#include <b.h>\n", NULL, NULL},
        {"it" APOS "s\n", "it's", "it" APOS "s", NULL, NULL},
    };
    size_t i;
    oom_count = 1;
    for (i = 0; i < TE_COUNT(list); i++) {
        oom_case = list + i;
        t_each_allocation_fails(oom_run);
    }
}

static void modes_survive_each_failing_allocation(void) {
    static const replace_case all = {"\ta\nx\n  a", "    a\n", "    b\n",
                                     NULL, "kept\tb\nx\n  b"};
    static const replace_case blank = {"a\n\nb\na\n\n\nb\n", "a\nb\n",
                                       "a\nc\n", NULL,
                                       "kepta\n\nc\na\n\n\nc\n"};
    static const replace_case after = {"\ta\n", "    a\n", "    b\n", NULL,
                                       "kept\ta\n\tb\n"};
    oom_count = 1;
    oom_all = true;
    oom_case = &all;
    t_each_allocation_fails(oom_run);
    oom_case = &blank;
    t_each_allocation_fails(oom_run);
    oom_all = false;
    oom_mode = HFSB_EDIT_APPEND_AFTER;
    oom_case = &after;
    t_each_allocation_fails(oom_run);
    oom_mode = HFSB_EDIT_REPLACE;
}

static void many_edits_survive_each_failing_allocation(void) {
    static const replace_case good[] = {
        {"a\nb \n\tc\nd" APOS "s\ne\n", "a", "1", NULL,
         "kept1\nb \n2\n\tc\nD" APOS "s\nE\n"},
        {NULL, "b\n\tc\n", "b\n2\n\tc\n", NULL, NULL},
        {NULL, "d's", "D's", NULL, NULL},
        {NULL, "e\n", "E\n", NULL, NULL},
    };
    static const replace_case overlap[] = {
        {"a\nb\nc\n", "a\nb", "1", NULL, NULL},
        {NULL, "b\nc", "2", NULL, NULL},
    };
    oom_case = good;
    oom_count = 4;
    t_each_allocation_fails(oom_run);
    oom_case = overlap;
    oom_count = 2;
    t_each_allocation_fails(oom_run);
}

int main(void) {
    T_RUN(edit_replaces_an_exact_match);
    T_RUN(edit_uses_the_line_ends_of_the_file);
    T_RUN(edit_forgives_a_missing_last_newline);
    T_RUN(edit_keeps_the_last_newline);
    T_RUN(edit_strips_copied_line_numbers);
    T_RUN(edit_ignores_blanks_at_the_end_of_lines);
    T_RUN(edit_matches_look_alikes);
    T_RUN(edit_ignores_the_length_of_blank_runs);
    T_RUN(edit_indents_new_text_as_the_file_is);
    T_RUN(edit_counts_depth_from_the_margin);
    T_RUN(edit_keeps_lines_that_are_indented_otherwise);
    T_RUN(edit_deletes_whole_lines);
    T_RUN(edit_drops_blank_lines_at_the_edges);
    T_RUN(edit_combines_runs_and_indentation);
    T_RUN(edit_ignores_blank_lines_inside);
    T_RUN(edit_keeps_any_number_of_blank_lines);
    T_RUN(edit_strips_code_fences);
    T_RUN(edit_matches_blank_lines_as_lines);
    T_RUN(edit_keeps_data_that_starts_with_numbers);
    T_RUN(edit_keeps_file_bytes_only_where_texts_agree);
    T_RUN(edit_leaves_the_byte_order_mark_alone);
    T_RUN(edit_accepts_any_bytes);
    T_RUN(edit_accepts_dots_that_are_code);
    T_RUN(edit_survives_each_failing_allocation);
    T_RUN(modes_survive_each_failing_allocation);
    T_RUN(many_edits_survive_each_failing_allocation);
    return T_END();
}
