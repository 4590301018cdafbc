/* path.c - classifying strings: scripts, paths and Space ids.

   Everything here looks at strings only, never at a file system. A script is
   a URL, a path, source code or a command line, decided as a person would:
   `import x` is Python, `x=1 make` is a shell command. The rules for Space ids
   are those of the Hub. */
#include "core_private.h"

/* ---- what a script is ---- */

/* White space as Python's str.strip() and str.isspace() see it. */
static bool hfsbi_is_space(unsigned long c) {
    if (c <= 0x20)
        return c == 0x20 || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
    return c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Where s has white space: anywhere, at its start, at its end. */
typedef struct hfsbi_spaces {
    bool any, first, last;
} hfsbi_spaces;

static hfsbi_spaces hfsbi_find_spaces(hfsb_str s) {
    hfsbi_spaces  found = HFSB_INIT;
    size_t        i = 0;
    unsigned long code;
    while (i < s.len) {
        size_t n = hfsb_utf8_step(s, i, &code, NULL);
        found.last = hfsbi_is_space(code);
        if (found.last && i == 0) found.first = true;
        if (found.last) found.any = true;
        i += n;
    }
    return found;
}

HFSBI_FN bool hfsbi_has_space(hfsb_str s) {
    return hfsbi_find_spaces(s).any;
}

/* A scheme may be in any case (RFC 3986, 3.1). */
static bool hfsbi_has_scheme(hfsb_str s, hfsb_str scheme) {
    return hfsbi_str_equal_nocase(hfsb_str_slice(s, 0, scheme.len), scheme);
}

static bool hfsbi_has_line_break(hfsb_str s) {
    return hfsb_str_find_byte(s, '\n') != HFSB_NPOS ||
           hfsb_str_find_byte(s, '\r') != HFSB_NPOS ||
           hfsb_str_find_byte(s, '\0') != HFSB_NPOS;
}

static bool hfsbi_is_script_path(hfsb_str s) {
    hfsbi_spaces spaces;
    if (hfsbi_has_line_break(s)) return false;
    spaces = hfsbi_find_spaces(s);
    if (spaces.first || spaces.last) return false;
    return hfsb_str_starts(s, HFSB_LIT("/")) ||
           hfsb_str_starts(s, HFSB_LIT("./")) ||
           hfsb_str_starts(s, HFSB_LIT("../")) ||
           (hfsb_str_ends(s, HFSB_LIT(".py")) && !spaces.any);
}

/* ---- source or command line: a line of Python or of shell ---- */

static bool hfsbi_is_name(char c, bool first) {
    return hfsbi_is_alpha(c) || c == '_' || (unsigned char)c >= 0x80 ||
           (!first && hfsbi_is_digit(c));
}

static size_t hfsbi_skip_blanks(hfsb_str s, size_t i) {
    while (i < s.len && hfsbi_is_blank(s.ptr[i])) i++;
    return i;
}

/* End of the name at i, or i when there is none. */
static size_t hfsbi_skip_name(hfsb_str s, size_t i) {
    size_t from = i;
    while (i < s.len && hfsbi_is_name(s.ptr[i], i == from)) i++;
    return i;
}

/* End of `name.name[...]` at i, or i. */
static size_t hfsbi_skip_target(hfsb_str s, size_t i) {
    size_t end = hfsbi_skip_name(s, i);
    if (end == i) return i;
    while (end < s.len) {
        size_t next = end;
        if (s.ptr[end] == '.') {
            next = hfsbi_skip_name(s, end + 1);
            if (next == end + 1) break;
        } else if (s.ptr[end] == '[') {
            next = hfsb_str_find_byte(hfsb_str_slice(s, end, s.len), ']');
            if (next == HFSB_NPOS) break;
            next += end + 1;
        } else {
            break;
        }
        end = next;
    }
    return end;
}

/* `x = 1`, `a, b = f()`, `x: int = 1`, `d["k"] += 1`. Without a blank before
   the sign it may be a shell setting a variable. */
static bool hfsbi_is_assignment(hfsb_str s) {
    size_t i = 0, end;
    for (;;) {
        end = hfsbi_skip_target(s, i);
        if (end == i) return false;
        i = hfsbi_skip_blanks(s, end);
        if (i == s.len || s.ptr[i] != ',') break;
        i = hfsbi_skip_blanks(s, i + 1);
    }
    if (i < s.len && s.ptr[i] == ':') { /* an annotation */
        size_t sign = hfsb_str_find(s, HFSB_LIT(" = "));
        return sign != HFSB_NPOS && sign > i;
    }
    if (i == end) return false;
    end = i;
    while (i < s.len && i - end < 3 && strchr("+-*/%@&|^<>:", s.ptr[i])) i++;
    return i < s.len && s.ptr[i] == '=' &&
           !(i + 1 < s.len && s.ptr[i + 1] == '=');
}

/* `print(1)`, `os.getcwd()`, but not the shell's `f() { ...; }`. */
static bool hfsbi_is_call(hfsb_str s) {
    size_t i = hfsbi_skip_target(s, 0), next;
    if (i == 0 || i == s.len || s.ptr[i] != '(') return false;
    next = hfsbi_skip_blanks(s, i + 1);
    if (next == s.len || s.ptr[next] != ')') return true;
    next = hfsbi_skip_blanks(s, next + 1);
    return next == s.len || s.ptr[next] != '{';
}

static bool hfsbi_has_text(hfsb_str s, const char *text) {
    return hfsb_str_find(s, hfsb_cstr(text)) != HFSB_NPOS;
}

/* A statement that starts with a keyword of Python. */
static bool hfsbi_is_statement(hfsb_str s) {
    size_t   end = hfsbi_skip_name(s, 0);
    hfsb_str word = hfsb_str_slice(s, 0, end);
    size_t   next = hfsbi_skip_blanks(s, end);
    hfsb_str rest = hfsb_str_slice(s, end, s.len);
    if (hfsbi_list_has(HFSB_LIT("if for while with try def class async match"),
                       ' ', word))
        return hfsbi_has_text(rest, ":") && !hfsbi_has_text(rest, "; do") &&
               !hfsbi_has_text(rest, ";do") &&
               !hfsbi_has_text(rest, "; then") &&
               !hfsbi_has_text(rest, ";then");
    if (next == end || next == s.len) return false;
    if (hfsb_str_equal(word, HFSB_LIT("from")))
        return hfsbi_has_text(rest, " import ");
    if (hfsb_str_equal(word, HFSB_LIT("import")))
        return hfsbi_is_name(s.ptr[next], true);
    return hfsbi_list_has(
        HFSB_LIT("await raise assert del global nonlocal lambda"), ' ', word);
}

/* Length of `x=1;` at the start of s, valid in both languages, or 0. */
static size_t hfsbi_skip_setting(hfsb_str s) {
    size_t sign = hfsbi_skip_name(s, 0), end = hfsb_str_find_byte(s, ';');
    if (sign == 0 || sign == s.len || s.ptr[sign] != '=') return 0;
    return end == HFSB_NPOS ? 0 : end + 1;
}

/* Settings such as `x=1;` decide nothing and are skipped. */
static bool hfsbi_looks_like_source(hfsb_str s) {
    size_t n;
    do {
        s = hfsb_str_slice(s, hfsbi_skip_blanks(s, 0), s.len);
        if (hfsb_str_starts(s, HFSB_LIT("#")) ||
            hfsb_str_starts(s, HFSB_LIT("\"\"\"")) ||
            hfsb_str_starts(s, HFSB_LIT("'''")) || hfsbi_is_statement(s) ||
            hfsbi_is_call(s) || hfsbi_is_assignment(s))
            return true;
        n = hfsbi_skip_setting(s);
        s = hfsb_str_slice(s, n, s.len);
    } while (n > 0);
    return false;
}

hfsb_script_kind hfsb_script_classify(hfsb_str script) {
    if (hfsbi_has_scheme(script, HFSB_LIT("http://")) ||
        hfsbi_has_scheme(script, HFSB_LIT("https://")))
        return HFSB_SCRIPT_URL;
    if (hfsbi_is_script_path(script)) return HFSB_SCRIPT_PATH;
    if (hfsbi_has_line_break(script) || hfsbi_looks_like_source(script))
        return HFSB_SCRIPT_INLINE;
    return HFSB_SCRIPT_COMMAND;
}

const char *hfsb_script_kind_name(hfsb_script_kind kind) {
    switch (kind) {
    case HFSB_SCRIPT_PATH: return "path";
    case HFSB_SCRIPT_URL: return "url";
    case HFSB_SCRIPT_INLINE: return "inline";
    case HFSB_SCRIPT_COMMAND: return "command";
    default: return "unknown";
    }
}

/* ---- paths ---- */

/* Removes the last component of the path that starts at `root`; false when
   it is empty or ends in "..". */
static bool hfsbi_path_up(hfsb_buf *out, size_t root) {
    hfsb_str held = hfsb_str_slice(hfsb_buf_str(out), root, out->len);
    size_t   at = held.len;
    while (at > 0 && held.ptr[at - 1] != '/') at--;
    if (held.len == 0 ||
        hfsb_str_equal(hfsb_str_slice(held, at, held.len), HFSB_LIT("..")))
        return false;
    hfsb_buf_truncate(out, root + (at > 0 ? at - 1 : 0));
    return true;
}

/* Appends the components of path to the path that starts at `root`. */
static void hfsbi_path_put(hfsb_buf *out, size_t root, bool absolute,
                           hfsb_str path) {
    hfsb_str part;
    while (out->status == HFSB_OK && hfsbi_list_next(&path, '/', &part)) {
        if (part.len == 0 || hfsb_str_equal(part, HFSB_LIT("."))) continue;
        if (hfsb_str_equal(part, HFSB_LIT("..")) &&
            (hfsbi_path_up(out, root) || absolute))
            continue;
        if (out->len > root) hfsb_buf_append_byte(out, '/');
        hfsb_buf_append(out, part);
    }
}

hfsb_status hfsb_path_join(hfsb_str base, hfsb_str path, hfsb_buf *out) {
    size_t mark = out->len;
    bool   alone = hfsb_str_starts(path, HFSB_LIT("/"));
    bool   absolute = alone || hfsb_str_starts(base, HFSB_LIT("/"));
    size_t root = out->len + (absolute ? 1 : 0);
    if (absolute) hfsb_buf_append_byte(out, '/');
    if (!alone) hfsbi_path_put(out, root, absolute, base);
    hfsbi_path_put(out, root, absolute, path);
    if (out->len == mark) hfsb_buf_append_byte(out, '.');
    return hfsb_buf_finish(out, mark);
}

hfsb_status hfsb_path_clean(hfsb_str path, hfsb_buf *out) {
    return hfsb_path_join(HFSB_LIT(""), path, out);
}

hfsb_str hfsb_path_base(hfsb_str path) {
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/') at--;
    return hfsb_str_slice(path, at, path.len);
}

hfsb_str hfsb_path_suffix(hfsb_str path) {
    hfsb_str base = hfsb_path_base(path);
    size_t   first = 0, at = base.len;
    while (first < base.len && base.ptr[first] == '.') first++;
    while (at > first && base.ptr[at - 1] != '.') at--;
    return hfsb_str_slice(base, at > first ? at - 1 : base.len, base.len);
}

/* ---- Spaces ---- */

static bool hfsbi_is_alnum(char c) {
    return hfsbi_is_alpha(c) || hfsbi_is_digit(c);
}

/* Checks the owner or the name, which is at offset `at` of the id: letters,
   digits and "-", for the name also "_" and "." (`extra` lists them); no "-"
   or "." twice in a row or at an end. */
static hfsb_status hfsbi_space_part(hfsb_str s, size_t at, const char *which,
                                    const char *extra, hfsb_err *err) {
    char   shown[16] = "a blank";
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool edge = i == 0 || i + 1 == s.len;
        bool twice = i > 0 && s.ptr[i - 1] == c;
        if (hfsbi_is_alnum(c) || (c == '_' && *extra)) continue;
        if (c != '-' && (c != '.' || !*extra)) {
            if (c > ' ' && c <= '~')
                (void)snprintf(shown, sizeof shown, "\"%c\"", c);
            else if (c != ' ')
                (void)snprintf(shown, sizeof shown, "the byte 0x%02X",
                               (unsigned)(unsigned char)c);
            return hfsbi_fail(err, HFSB_ARG, at + i,
                              "Character %zu of the %s of a Space id is %s: "
                              "only A-Z, a-z, 0-9 and \"-\"%s are allowed.",
                              i + 1, which, shown, extra);
        }
        if (edge || twice)
            return hfsbi_fail(err, HFSB_ARG, at + i,
                              "The %s of a Space id has \"%c\" %s, which is "
                              "not allowed.",
                              which, c, edge ? "at an end" : "twice in a row");
    }
    return HFSB_OK;
}

hfsb_status hfsb_space_check(hfsb_str id, hfsb_err *err) {
    size_t      slash = hfsb_str_find_byte(id, '/');
    hfsb_str    owner = hfsb_str_slice(id, 0, slash);
    hfsb_str    name;
    hfsb_status st;
    if (slash == HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, id.len,
                          "A Space id is \"owner/name\", this one has no "
                          "\"/\".");
    name = hfsb_str_slice(id, slash + 1, id.len);
    if (owner.len < 2 || owner.len > 42)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The owner of a Space id has 2 to 42 characters, "
                          "not %zu.",
                          owner.len);
    st = hfsbi_space_part(owner, 0, "owner", "", err);
    if (st != HFSB_OK) return st;
    if (name.len < 1 || name.len > 96)
        return hfsbi_fail(err, HFSB_ARG, slash + 1,
                          "The name of a Space id has 1 to 96 characters, "
                          "not %zu.",
                          name.len);
    st = hfsbi_space_part(name, slash + 1, "name", ", \"_\" and \".\"", err);
    if (st != HFSB_OK) return st;
    if (hfsb_str_ends(name, HFSB_LIT(".git")))
        return hfsbi_fail(err, HFSB_ARG, id.len - 4,
                          "The name of a Space id must not end in \".git\": "
                          "give it without.");
    return hfsbi_ok(err);
}

hfsb_status hfsb_space_host(hfsb_str id, hfsb_buf *out, hfsb_err *err) {
    size_t      mark = out->len;
    hfsb_status st = hfsb_space_check(id, err);
    size_t      i;
    if (st != HFSB_OK) return st;
    for (i = 0; i < id.len; i++) {
        char c = hfsbi_lower(id.ptr[i]);
        if (hfsbi_is_alnum(c)) hfsb_buf_append_byte(out, c);
        else if (hfsbi_is_alnum(id.ptr[i - 1])) hfsb_buf_append_byte(out, '-');
    }
    if (out->status == HFSB_OK && out->len - mark > 63) {
        i = out->len - mark;
        hfsb_buf_truncate(out, mark);
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The host name of this Space would be %zu "
                          "characters long, 63 are possible: ask the Hub "
                          "for its subdomain.",
                          i);
    }
    hfsb_buf_append(out, HFSB_LIT(".hf.space"));
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        return hfsbi_fail_status(err, out->status, "Host name of a Space");
    return hfsbi_ok(err);
}
