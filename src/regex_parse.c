/* regex_parse.c - reads POSIX extended regular expressions, as GNU grep -E
   does, and what models write besides. Depends on: base, utf8, regex_class,
   regex_program. */
#include "regex_parts.h"

/* ---- what is shared with brackets ---- */

HFSBI_FN hfsb_status hfsbi_reader_fail(hfsbi_reader *r, hfsb_status code,
                                       size_t pos, const char *message) {
    if (r->status == HFSB_OK)
        r->status = hfsbi_fail(r->err, code, pos, "%s", message);
    return r->status;
}

HFSBI_FN uint32_t hfsbi_reader_next(hfsbi_reader *r) {
    unsigned long code;
    bool          valid;
    size_t        n = hfsb_utf8_step(r->text, r->at, &code, &valid);
    if (!valid)
        hfsbi_reader_fail(r, HFSB_ARG, r->at,
                          "The pattern is not UTF-8 here. Search for such "
                          "bytes with a literal pattern.");
    r->at += n;
    return (uint32_t)code;
}

/* The byte at r->at + ahead; NUL behind the end. */
static char hfsbi_reader_peek(const hfsbi_reader *r, size_t ahead) {
    return r->at + ahead < r->text.len ? r->text.ptr[r->at + ahead] : '\0';
}

/* ---- escapes ---- */

static const char hfsbi_refuse_back[] =
    "Back-references such as \\1 are not supported: they cannot be matched "
    "in linear time. Write the repeated text out, or search for a looser "
    "pattern and compare the lines found.";

/* Sentences for the escapes of other dialects. */
static const char *hfsbi_escape_advice(char c) {
    switch (c) {
    case 'p':
    case 'P':
        return "\\p{...} is not supported. Use a class such as [[:alpha:]], "
               "[[:upper:]], [[:punct:]] or \\w.";
    case 'x':
    case 'u':
    case 'N':
        return "Characters by number (\\x41) are not supported: write the "
               "character itself.";
    case 'n':
        return "\\n matches nothing: lines are searched one by one, without "
               "their line feeds. Use ^ and $ for the ends of a line.";
    case 'k':
    case 'g': return hfsbi_refuse_back;
    case 'Q':
    case 'E':
        return "\\Q...\\E is not supported: search with the literal option, "
               "or put a backslash before each special character.";
    default:
        return "A backslash before this letter means nothing here. For the "
               "letter itself leave the backslash out; there are \\w \\W \\s "
               "\\S \\d \\D \\b \\B \\< \\> \\t.";
    }
}

/* The border that \c stands for; false: it is none. */
static bool hfsbi_escape_border(char c, hfsbi_regex_border *border) {
    switch (c) {
    case 'b': *border = HFSBI_WORD_BORDER; return true;
    case 'B': *border = HFSBI_WORD_INSIDE; return true;
    case '<': *border = HFSBI_WORD_BEGIN; return true;
    case '>': *border = HFSBI_WORD_END; return true;
    case '`':
    case 'A': *border = HFSBI_LINE_BEGIN; return true;
    case '\'':
    case 'z':
    case 'Z': *border = HFSBI_LINE_END; return true;
    default: return false;
    }
}

/* What \c stands for as a single character; NUL: none. */
static char hfsbi_escape_control(char c) {
    switch (c) {
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'e': return 27;
    default: return '\0';
    }
}

static bool hfsbi_regex_is_alnum(char c) {
    return c != '_' && hfsbi_regex_is_word((unsigned char)c) &&
           (unsigned char)c < 0x80;
}

/* r->at is behind the backslash. */
static uint32_t hfsbi_read_escape(hfsbi_reader *r) {
    hfsbi_regex_border border;
    char               c = hfsbi_reader_peek(r, 0);
    size_t             pos = r->at - 1;
    if (r->at == r->text.len) {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "The pattern ends in a backslash. Write \\\\ for "
                          "the character itself.");
        return 0;
    }
    if (c && strchr("wWsSdD", c)) {
        r->at++;
        hfsbi_ranges_escape(&r->tree->set, c);
        return hfsbi_syntax_class(r->tree, false, '\n');
    }
    if (hfsbi_escape_border(c, &border)) {
        r->at++;
        return hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_BORDER,
                                (uint32_t)border);
    }
    if (hfsbi_escape_control(c)) {
        r->at++;
        return hfsbi_syntax_char(r->tree,
                                 (unsigned char)hfsbi_escape_control(c));
    }
    if (c >= '1' && c <= '9')
        hfsbi_reader_fail(r, HFSB_ARG, pos, hfsbi_refuse_back);
    if (hfsbi_regex_is_alnum(c))
        hfsbi_reader_fail(r, HFSB_ARG, pos, hfsbi_escape_advice(c));
    return hfsbi_syntax_char(r->tree, hfsbi_reader_next(r));
}

/* ---- brackets ---- */

static void hfsbi_bracket_unclosed(hfsbi_reader *r, size_t open) {
    hfsbi_reader_fail(r, HFSB_ARG, open,
                      "This [ is not closed by a ]. Write \\[ for the "
                      "character itself; in brackets, \\\\ for a backslash "
                      "and \\] for a ].");
}

/* [:name:] [=c=] [.c.] with r->at behind its first two bytes. True: a class,
   which cannot begin a range; false: the character in *code. */
static bool hfsbi_bracket_named(hfsbi_reader *r, char mark, uint32_t *code) {
    size_t   begin = r->at, end = r->at;
    hfsb_str name;
    while (end + 1 < r->text.len &&
           (r->text.ptr[end] != mark || r->text.ptr[end + 1] != ']'))
        end++;
    if (end + 1 >= r->text.len) {
        hfsbi_bracket_unclosed(r, begin - 2);
        return true;
    }
    name = hfsb_str_slice(r->text, begin, end);
    if (mark == ':') {
        if (!hfsbi_ranges_named(&r->tree->set, name, r->tree->fold))
            hfsbi_reader_fail(r, HFSB_ARG, begin - 2,
                              "There is no such class of characters. There "
                              "are [:alpha:] [:digit:] [:alnum:] [:upper:] "
                              "[:lower:] [:space:] [:blank:] [:punct:] "
                              "[:xdigit:] [:print:] [:graph:] [:cntrl:].");
        r->at = end + 2;
        return true;
    }
    *code = name.len ? hfsbi_reader_next(r) : 0;
    if (name.len == 0 || r->at != end)
        hfsbi_reader_fail(r, HFSB_ARG, begin - 2,
                          "[. .] and [= =] hold one character each.");
    r->at = end + 2;
    if (mark == '=') hfsbi_ranges_add(&r->tree->set, *code, *code);
    return mark == '=';
}

/* An escape in a bracket, with r->at behind the backslash. As above. */
static bool hfsbi_bracket_escape(hfsbi_reader *r, uint32_t *code) {
    char c = hfsbi_reader_peek(r, 0);
    *code = '\\';
    if (r->at == r->text.len) return false;
    if (!r->glob && c && strchr("wWsSdD", c)) {
        r->at++;
        hfsbi_ranges_escape(&r->tree->set, c);
        return true;
    }
    if (!r->glob && hfsbi_escape_control(c)) {
        r->at++;
        *code = (unsigned char)hfsbi_escape_control(c);
        return false;
    }
    if (!r->glob && c == 'n') { /* [^\n]: no line feed is in a line anyway */
        r->at++;
        *code = '\n';
        return false;
    }
    if (r->glob || !hfsbi_regex_is_alnum(c)) *code = hfsbi_reader_next(r);
    return false;
}

/* One character, or a class (true), at r->at. */
static bool hfsbi_bracket_item(hfsbi_reader *r, uint32_t *code) {
    char c = hfsbi_reader_peek(r, 0), mark = hfsbi_reader_peek(r, 1);
    if (c == '[' && (mark == ':' || mark == '=' || mark == '.')) {
        r->at += 2;
        return hfsbi_bracket_named(r, mark, code);
    }
    if (c == '\\') {
        r->at++;
        return hfsbi_bracket_escape(r, code);
    }
    *code = hfsbi_reader_next(r);
    return false;
}

/* An item and, when it begins a range, the other end of it. */
static void hfsbi_bracket_range(hfsbi_reader *r, bool first) {
    uint32_t low = 0, high;
    size_t   pos = r->at;
    bool     dash = hfsbi_reader_peek(r, 0) == '-' && !first;
    bool     is_class = hfsbi_bracket_item(r, &low);
    bool     last = hfsbi_reader_peek(r, 0) == ']';
    bool     range = hfsbi_reader_peek(r, 0) == '-' &&
                 hfsbi_reader_peek(r, 1) != ']' && r->at + 1 < r->text.len;
    bool bad = dash && !last && !r->glob;
    high = low;
    if (range && !bad && r->status == HFSB_OK) {
        r->at++;
        bad = is_class || hfsbi_bracket_item(r, &high) || high < low;
    }
    if (bad)
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "This range in brackets has no end that comes "
                          "after its beginning. Put a - that stands for "
                          "itself last: [a-z_-].");
    if (!is_class && r->status == HFSB_OK)
        hfsbi_ranges_add(&r->tree->set, low, high);
}

/* [:alpha:] without the outer brackets is a slip, as GNU grep says too. */
static bool hfsbi_bracket_is_slip(const hfsbi_reader *r) {
    size_t end = r->at + 1;
    if (r->glob || hfsbi_reader_peek(r, 0) != ':') return false;
    while (end < r->text.len && hfsbi_regex_is_alnum(r->text.ptr[end])) end++;
    return end > r->at + 1 && end + 1 < r->text.len &&
           r->text.ptr[end] == ':' && r->text.ptr[end + 1] == ']';
}

HFSBI_FN uint32_t hfsbi_read_bracket(hfsbi_reader *r) {
    size_t open = r->at - 1, first;
    bool   negate;
    if (hfsbi_bracket_is_slip(r))
        hfsbi_reader_fail(r, HFSB_ARG, open,
                          "A class of characters is written [[:alpha:]], "
                          "with two brackets.");
    negate = hfsbi_reader_peek(r, 0) == '^' ||
             (r->glob && hfsbi_reader_peek(r, 0) == '!');
    if (negate) r->at++;
    first = r->at;
    r->tree->set.count = 0;
    while (r->status == HFSB_OK) {
        if (r->at >= r->text.len) {
            hfsbi_bracket_unclosed(r, open);
        } else if (r->text.ptr[r->at] == ']' && r->at > first) {
            r->at++;
            return hfsbi_syntax_class(r->tree, negate, r->glob ? '/' : '\n');
        } else {
            hfsbi_bracket_range(r, r->at == first);
        }
    }
    return 0;
}

/* ---- repeats ---- */

/* A number of {n,m} at r->at: false when there is none. What is too large
   stays too large. */
static bool hfsbi_read_number(hfsbi_reader *r, uint32_t *n) {
    size_t from = r->at;
    *n = 0;
    while (hfsbi_reader_peek(r, 0) >= '0' && hfsbi_reader_peek(r, 0) <= '9') {
        *n = *n * 10 + (uint32_t)(hfsbi_reader_peek(r, 0) - '0');
        if (*n > HFSBI_REGEX_REPEAT) *n = HFSBI_REGEX_REPEAT + 1;
        r->at++;
    }
    return r->at > from;
}

/* {n} {n,} {,m} {n,m} with r->at on the brace. False, and r->at as it was,
   when it is none: then the brace stands for itself. */
static bool hfsbi_read_braces(hfsbi_reader *r, uint32_t *min, uint32_t *max) {
    size_t open = r->at;
    bool   has_min, comma, has_max = false;
    r->at++;
    has_min = hfsbi_read_number(r, min);
    *max = *min;
    comma = hfsbi_reader_peek(r, 0) == ',';
    if (comma) {
        r->at++;
        has_max = hfsbi_read_number(r, max);
        if (!has_max) *max = HFSBI_SYNTAX_MANY;
    }
    if (hfsbi_reader_peek(r, 0) != '}' || (!has_min && !comma)) {
        r->at = open;
        return false;
    }
    r->at++;
    if (*min > HFSBI_REGEX_REPEAT || (has_max && *max > HFSBI_REGEX_REPEAT))
        hfsbi_reader_fail(r, HFSB_LIMIT, open,
                          "A repeat may be at most {32767}. Use * or + for "
                          "any number.");
    else if (*max < *min)
        hfsbi_reader_fail(r, HFSB_ARG, open,
                          "In {n,m} the first number is larger than the "
                          "second.");
    return true;
}

/* A repeat at r->at, or false. */
static bool hfsbi_read_repeat(hfsbi_reader *r, uint32_t *min, uint32_t *max) {
    char c = hfsbi_reader_peek(r, 0);
    if (c == '{') {
        if (!hfsbi_read_braces(r, min, max)) return false;
    } else if (c == '*' || c == '+' || c == '?') {
        r->at++;
        *min = c == '+';
        *max = c == '?' ? 1 : HFSBI_SYNTAX_MANY;
    } else {
        return false;
    }
    /* the lazy ones: the same lines match */
    if (hfsbi_reader_peek(r, 0) == '?') r->at++;
    return true;
}

/* ---- the grammar ---- */

static uint32_t hfsbi_read_either(hfsbi_reader *r);

/* What follows "(?" is from other dialects; r->at is on the "?". */
static void hfsbi_read_extension(hfsbi_reader *r) {
    size_t pos = r->at - 1;
    char   c = hfsbi_reader_peek(r, 1), d = hfsbi_reader_peek(r, 2);
    if (c == ':') {
        r->at += 2;
    } else if (c == '=' || c == '!' || (c == '<' && (d == '=' || d == '!'))) {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "Look-around such as (?=...) or (?!...) is not "
                          "supported. Search for the plain pattern, and "
                          "leave out lines in a second step.");
    } else if (c == 'P' || c == '<' || c == '\'') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "Named groups are not supported: write (...).");
    } else if (hfsbi_regex_is_alnum(c) || c == '-') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "Flags such as (?i) are understood only as (?i) at "
                          "the very beginning; there is also the option to "
                          "ignore case.");
    } else if (c == '>' || c == '|' || c == '(' || c == '#') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "(?> (?| (?( and (?# are not supported: write a "
                          "plain group (...).");
    }
}

/* r->at is behind the "(". */
static uint32_t hfsbi_read_group(hfsbi_reader *r) {
    size_t   open = r->at - 1;
    uint32_t inner;
    if (hfsbi_reader_peek(r, 0) == '?') hfsbi_read_extension(r);
    if (++r->depth > HFSBI_REGEX_DEPTH)
        hfsbi_reader_fail(r, HFSB_LIMIT, open,
                          "Groups are nested too deeply: 200 levels at "
                          "most.");
    if (r->status != HFSB_OK) return 0;
    inner = hfsbi_read_either(r);
    r->depth--;
    if (hfsbi_reader_peek(r, 0) != ')' || r->at >= r->text.len)
        hfsbi_reader_fail(r, HFSB_ARG, open,
                          "This ( is not closed by a ). Write \\( for the "
                          "character itself.");
    r->at++;
    return inner;
}

static uint32_t hfsbi_read_atom(hfsbi_reader *r) {
    switch (hfsbi_reader_peek(r, 0)) {
    case '(': r->at++; return hfsbi_read_group(r);
    case '[': r->at++; return hfsbi_read_bracket(r);
    case '\\': r->at++; return hfsbi_read_escape(r);
    case '.': r->at++; return hfsbi_syntax_class(r->tree, true, '\n');
    case '^':
        r->at++;
        return hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_BORDER,
                                HFSBI_LINE_BEGIN);
    case '$':
        r->at++;
        return hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_BORDER, HFSBI_LINE_END);
    default: return hfsbi_syntax_char(r->tree, hfsbi_reader_next(r));
    }
}

/* An atom and the repeats behind it. As GNU reads it, a repeat with nothing
   before it repeats the empty text. */
static uint32_t hfsbi_read_piece(hfsbi_reader *r) {
    uint32_t min, max, piece;
    size_t   pos = r->at, nested = 0;
    if (hfsbi_read_repeat(r, &min, &max))
        piece = hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_EMPTY, 0);
    else piece = hfsbi_read_atom(r);
    while (r->status == HFSB_OK && hfsbi_read_repeat(r, &min, &max)) {
        uint32_t outer = hfsbi_syntax_repeat(r->tree, piece, min, max);
        if (outer != piece && ++nested > 16)
            hfsbi_reader_fail(r, HFSB_LIMIT, pos,
                              "Too many repeats of repeats in one place.");
        piece = outer;
    }
    return piece;
}

static uint32_t hfsbi_read_list(hfsbi_reader *r) {
    uint32_t list = hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_LIST, 0);
    while (r->status == HFSB_OK && r->at < r->text.len) {
        char c = r->text.ptr[r->at];
        if (r->tree->program->status != HFSB_OK) break;
        if (c == '|' || (c == ')' && r->depth > 0)) break;
        hfsbi_syntax_append(r->tree, list, hfsbi_read_piece(r));
    }
    return list;
}

static uint32_t hfsbi_read_either(hfsbi_reader *r) {
    uint32_t first = hfsbi_read_list(r), either;
    if (hfsbi_reader_peek(r, 0) != '|' || r->status != HFSB_OK) return first;
    either = hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_EITHER, 0);
    hfsbi_syntax_append(r->tree, either, first);
    while (r->status == HFSB_OK && r->tree->program->status == HFSB_OK &&
           hfsbi_reader_peek(r, 0) == '|') {
        r->at++;
        hfsbi_syntax_append(r->tree, either, hfsbi_read_list(r));
    }
    return either;
}

HFSBI_FN hfsb_status hfsbi_regex_parse(hfsbi_syntax *tree, hfsb_str pattern,
                                       uint32_t *root, hfsb_err *err) {
    hfsbi_reader r = HFSB_INIT;
    r.text = pattern;
    r.tree = tree;
    r.err = err;
    if (pattern.len > HFSBI_REGEX_PATTERN)
        return hfsbi_reader_fail(&r, HFSB_LIMIT, HFSBI_REGEX_PATTERN,
                                 "A pattern may have at most 65,536 bytes.");
    if (hfsb_str_starts(pattern, HFSB_LIT("(?i)"))) {
        tree->fold = true;
        r.at = 4;
    }
    *root = hfsbi_read_either(&r);
    return r.status;
}
