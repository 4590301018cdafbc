/* secret.c - hides secrets in texts that are logged or shown.

   A secret is recognised in one of two ways:

       by its value    the owner of a token gives it: hfsbi_redact()
       by its shape    hf_..., sk-..., "Bearer ...", password=..., https://a:b@
                       hfsbi_redact_shapes()

   Each secret becomes "***". Nothing shorter than that is hidden, so both work
   in place, cannot fail and only shorten a text. Shapes are a guess and may
   hide a harmless word; names such as max_tokens=512 or tokenizer=... are left
   alone. */
#include "core_private.h"

enum {
    HFSBI_SECRET_MIN = 4, /* bytes: less could be part of any word */
    HFSBI_TOKEN_MIN = 15  /* bytes of the shortest hfsbi_is_token_word() */
};

/* ---- by value ---- */

/* The length of the longest secret at the start of text; 0: none. */
static size_t hfsbi_secret_at(hfsbi_secret_fn secret, const void *owner,
                              size_t count, hfsb_str text) {
    size_t i, longest = 0;
    for (i = 0; i < count; i++) {
        hfsb_str one = secret(owner, i);
        if (one.len >= HFSBI_SECRET_MIN && one.len > longest &&
            hfsb_str_starts(text, one))
            longest = one.len;
    }
    return longest;
}

HFSBI_FN size_t hfsbi_redact(hfsbi_secret_fn secret, const void *owner,
                             size_t count, char *text, size_t len) {
    bool   first[256]; /* bytes that begin a secret */
    size_t at = 0, to = 0, i;
    memset(first, 0, sizeof first);
    for (i = 0; i < count; i++) {
        hfsb_str one = secret(owner, i);
        if (one.len) first[(unsigned char)one.ptr[0]] = true;
    }
    while (at < len && !first[(unsigned char)text[at]]) at++;
    to = at;
    while (at < len) {
        size_t n = 0;
        if (first[(unsigned char)text[at]])
            n = hfsbi_secret_at(secret, owner, count,
                                hfsb_str_make(text + at, len - at));
        if (!n) {
            text[to++] = text[at++];
            continue;
        }
        memcpy(text + to, "***", 3);
        to += 3;
        at += n;
    }
    if (to < len) text[to] = '\0';
    return to;
}

/* ---- by shape ---- */

/* A text being redacted: bytes before `to` are final, bytes from `at` on are
   not yet searched. */
typedef struct hfsbi_redaction {
    char  *text;
    size_t len, at, to;
} hfsbi_redaction;

static void hfsbi_redaction_keep(hfsbi_redaction *r, size_t end) {
    size_t n = end - r->at;
    if (r->to != r->at) memmove(r->text + r->to, r->text + r->at, n);
    r->to += n;
    r->at = end;
}

static void hfsbi_redaction_hide(hfsbi_redaction *r, size_t end) {
    if (end - r->at < HFSBI_SECRET_MIN) {
        hfsbi_redaction_keep(r, end);
        return;
    }
    memcpy(r->text + r->to, "***", 3);
    r->to += 3;
    r->at = end;
}

static bool hfsbi_is_name_byte(char c) {
    return hfsbi_is_digit(c) || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

/* Bytes of a token: base64 in both alphabets, and "~" of Bearer. */
static bool hfsbi_is_token_byte(char c) {
    return hfsbi_is_name_byte(c) || c == '+' || c == '/' || c == '=' ||
           c == '~';
}

static bool hfsbi_same_letters(hfsb_str a, const char *b) {
    size_t i;
    for (i = 0; i < a.len && b[i]; i++)
        if ((a.ptr[i] == '-' ? '_' : hfsbi_lower(a.ptr[i])) != b[i])
            return false;
    return i == a.len && !b[i];
}

/* True for a word that begins like a token of a well-known service. */
static bool hfsbi_is_token_word(hfsb_str word) {
    static const struct {
        const char *prefix;
        size_t      rest; /* bytes that follow, at least */
    } list[] = {{"hf_", 16},   {"sk-", 16},         {"ghp_", 20},
                {"gho_", 20},  {"ghs_", 20},        {"ghu_", 20},
                {"ghr_", 20},  {"github_pat_", 20}, {"glpat-", 16},
                {"xoxb-", 10}, {"xoxp-", 10},       {"AKIA", 16},
                {"ASIA", 16},  {"AIza", 30},        {"npm_", 20},
                {"pypi-", 20}, {"eyJ", 40},         {"xoxe.", 10},
                {"xapp-", 10}, {"dckr_pat_", 20},   {"glsa_", 20},
                {"r8_", 20}};
    size_t i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].prefix[0] == word.ptr[0] &&
            hfsb_str_starts(word, hfsb_cstr(list[i].prefix)) &&
            word.len >= strlen(list[i].prefix) + list[i].rest)
            return true;
    return false;
}

/* True when name ends in one of these words, like HF_TOKEN or db.password. */
static bool hfsbi_name_ends(hfsb_str name, const char *const *words) {
    for (; *words; words++) {
        size_t n = strlen(*words);
        char   before = name.len > n ? name.ptr[name.len - n - 1] : '_';
        if (name.len >= n &&
            (before == '_' || before == '-' || before == '.') &&
            hfsbi_same_letters(hfsb_str_slice(name, name.len - n, name.len),
                               *words))
            return true;
    }
    return false;
}

static bool hfsbi_is_upper_name(hfsb_str name) {
    size_t i;
    for (i = 0; i < name.len; i++)
        if (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') return false;
    return true;
}

/* How sure it is that a name is followed by a secret. */
typedef enum hfsbi_secrecy {
    HFSBI_NOT_SECRET,
    HFSBI_MAYBE_SECRET, /* if it looks like a token: pad_token="<pad>" */
    HFSBI_SECRET
} hfsbi_secrecy;

static hfsbi_secrecy hfsbi_name_secrecy(hfsb_str name) {
    static const char *const sure[] = {
        "password",     "passwd",      "passphrase",  "secret",
        "api_key",      "apikey",      "access_key",  "accesskey",
        "secret_key",   "private_key", "passcode",    "credentials",
        "access_token", "auth_token",  "accesstoken", "pgpassword",
        "mysql_pwd",    NULL};
    static const char *const maybe[] = {"token", "key", "signature", "sig",
                                        NULL};
    /* most words do not end in one of these letters */
    if (!name.len || !strchr("degnsty", hfsbi_lower(name.ptr[name.len - 1])))
        return HFSBI_NOT_SECRET;
    if (hfsbi_name_ends(name, sure)) return HFSBI_SECRET;
    if (!hfsbi_name_ends(name, maybe)) return HFSBI_NOT_SECRET;
    return hfsbi_is_upper_name(name) ? HFSBI_SECRET : HFSBI_MAYBE_SECRET;
}

HFSBI_FN bool hfsbi_is_secret_name(hfsb_str name) {
    return hfsbi_name_secrecy(name) != HFSBI_NOT_SECRET;
}

/* True for 16 or more bytes of a token's alphabet, including a digit. */
static bool hfsbi_looks_random(hfsb_str value) {
    bool   digit = false;
    size_t i;
    for (i = 0; i < value.len; i++) {
        if (!hfsbi_is_token_byte(value.ptr[i])) return false;
        digit = digit || hfsbi_is_digit(value.ptr[i]);
    }
    return digit && value.len >= 16;
}

/* The end of a value that begins at `at`: its quote, or the end of a word. */
static size_t hfsbi_value_end(const hfsbi_redaction *r, size_t at,
                              char quote) {
    while (at < r->len && r->text[at] != '\n' &&
           (quote ? r->text[at] != quote
                  : (unsigned char)r->text[at] > ' ' &&
                        !strchr(";&|<>,\"'`)}", r->text[at])))
        at++;
    return at;
}

/* After a name: NAME=value, NAME: "value", "NAME":"value", --name value. Hides
   the value, unless it is a variable or an expression. */
static void hfsbi_redact_value(hfsbi_redaction *r, bool option,
                               hfsbi_secrecy how) {
    size_t   at = r->at, end;
    char     quote = '\0';
    hfsb_str value;
    if (at < r->len && (r->text[at] == '"' || r->text[at] == '\'')) at++;
    while (at < r->len && r->text[at] == ' ') at++;
    if (at < r->len && (r->text[at] == '=' || r->text[at] == ':')) at++;
    else if (!option || at == r->at) return;
    while (at < r->len && r->text[at] == ' ') at++;
    if (at < r->len && (r->text[at] == '"' || r->text[at] == '\''))
        quote = r->text[at++];
    end = hfsbi_value_end(r, at, quote);
    value = hfsb_str_make(r->text + at, end - at);
    if (value.len < HFSBI_SECRET_MIN || strchr("$<{*", value.ptr[0])) return;
    if (!quote && (hfsb_str_find_byte(value, '(') != HFSB_NPOS ||
                   hfsb_str_find_byte(value, '[') != HFSB_NPOS))
        return;
    if (how == HFSBI_MAYBE_SECRET && !hfsbi_looks_random(value)) return;
    hfsbi_redaction_keep(r, at);
    hfsbi_redaction_hide(r, end);
}

/* After "Authorization": everything up to a quote or the end of the line.
   After "Bearer": the next word. */
static void hfsbi_redact_header(hfsbi_redaction *r, bool bearer) {
    size_t at = r->at, end;
    while (at < r->len && strchr(bearer ? " " : " :=", r->text[at])) at++;
    if (at == r->at || at == r->len || r->text[at] == '$') return;
    for (end = at; end < r->len; end++)
        if (bearer ? !hfsbi_is_token_byte(r->text[end])
                   : strchr("\"'\n\r", r->text[end]) != NULL)
            break;
    if (!bearer && hfsb_str_find_byte(hfsb_str_make(r->text + at, end - at),
                                      '$') != HFSB_NPOS)
        return;
    hfsbi_redaction_keep(r, at);
    hfsbi_redaction_hide(r, end);
}

/* After "-u" or "--user": hides the password of user:password. A number is a
   group ID: docker run -u 1000:1000. */
static void hfsbi_redact_user(hfsbi_redaction *r) {
    size_t   at = r->at, end, colon, i;
    char     quote = '\0';
    hfsb_str pass;
    while (at < r->len && (r->text[at] == ' ' || r->text[at] == '=')) at++;
    if (at < r->len && (r->text[at] == '"' || r->text[at] == '\''))
        quote = r->text[at++];
    end = hfsbi_value_end(r, at, quote);
    colon = hfsb_str_find_byte(hfsb_str_make(r->text + at, end - at), ':');
    if (at == r->at || colon == HFSB_NPOS) return;
    at += colon + 1;
    pass = hfsb_str_make(r->text + at, end - at);
    for (i = 0; i < pass.len && hfsbi_is_digit(pass.ptr[i]); i++) continue;
    if (i == pass.len || strchr("$<{", pass.ptr[0])) return;
    hfsbi_redaction_keep(r, at);
    hfsbi_redaction_hide(r, end);
}

/* At "://": hides the password of user:password@host, and a token in place of
   the user. */
static void hfsbi_redact_userinfo(hfsbi_redaction *r) {
    size_t at = r->at + 3, colon = 0, begin = at;
    for (; at < r->len && (unsigned char)r->text[at] > ' ' &&
           !strchr("/\"'`<>", r->text[at]);
         at++) {
        if (r->text[at] == ':' && !colon) colon = at + 1;
        if (r->text[at] != '@') continue;
        if (!colon && hfsbi_looks_random(
                          hfsb_str_make(r->text + begin, at - begin)))
            colon = begin;
        if (colon && r->text[colon] != '$') {
            hfsbi_redaction_keep(r, colon);
            hfsbi_redaction_hide(r, at);
        }
        break;
    }
    if (r->text[r->at] == ':') hfsbi_redaction_keep(r, r->at + 3);
}

/* Hides a private key in PEM up to its end, or that of the text. */
static bool hfsbi_redact_key(hfsbi_redaction *r) {
    hfsb_str rest = hfsb_str_make(r->text + r->at, r->len - r->at);
    size_t   line = hfsb_str_find_byte(rest, '\n');
    size_t   end = hfsb_str_find(rest, HFSB_LIT("-----END"));
    size_t   name = hfsb_str_find(rest, HFSB_LIT("PRIVATE KEY"));
    if (!hfsb_str_starts(rest, HFSB_LIT("-----BEGIN")) || name > 40)
        return false;
    if (line >= end || line < name) line = name + 11;
    if (end < line) line = end;
    hfsbi_redaction_keep(r, r->at + line);
    hfsbi_redaction_hide(r, end == HFSB_NPOS ? r->len : r->at - line + end);
    return true;
}

static const char *const hfsbi_header_names[] = {"authorization", NULL};
static const char *const hfsbi_cookie_names[] = {"cookie", NULL};

static void hfsbi_redact_word(hfsbi_redaction *r, size_t end) {
    hfsb_str      word = hfsb_str_make(r->text + r->at, end - r->at);
    bool          option = hfsb_str_starts(word, HFSB_LIT("--"));
    hfsbi_secrecy how;
    if (hfsbi_is_token_word(word)) {
        hfsbi_redaction_hide(r, end);
        return;
    }
    if (option && hfsbi_redact_key(r)) return;
    how = hfsbi_name_secrecy(word);
    option = option && how != HFSBI_NOT_SECRET;
    if (hfsbi_same_letters(word, "__token")) how = HFSBI_SECRET;
    hfsbi_redaction_keep(r, end);
    word = hfsb_str_make(r->text + r->to - word.len, word.len);
    if (hfsbi_same_letters(word, "bearer")) hfsbi_redact_header(r, true);
    else if (hfsbi_name_ends(word, hfsbi_header_names) ||
             (hfsbi_name_ends(word, hfsbi_cookie_names) && r->at < r->len &&
              r->text[r->at] == ':'))
        hfsbi_redact_header(r, false);
    else if (hfsb_str_equal(word, HFSB_LIT("-u")) ||
             hfsb_str_equal(word, HFSB_LIT("--user")))
        hfsbi_redact_user(r);
    else if (how != HFSBI_NOT_SECRET) hfsbi_redact_value(r, option, how);
}

/* True when no shape can match the text: no word is a token, and nothing
   separates a name from its value. This holds for most paths, and the test
   takes a fraction of the time of the search. */
static bool hfsbi_is_shapeless(hfsb_str text) {
    size_t at = 0, end;
    for (; at < text.len; at = end + 1) {
        for (end = at; end < text.len; end++)
            if (!hfsbi_is_name_byte(text.ptr[end])) break;
        if (end - at >= HFSBI_TOKEN_MIN &&
            hfsbi_is_token_word(hfsb_str_slice(text, at, end)))
            return false;
        if (end < text.len && strchr(" :=\"'", text.ptr[end])) return false;
    }
    return true;
}

HFSBI_FN size_t hfsbi_redact_shapes(char *text, size_t len) {
    hfsbi_redaction r;
    if (hfsbi_is_shapeless(hfsb_str_make(text, len))) return len;
    r.text = text;
    r.len = len;
    r.at = r.to = 0;
    while (r.at < len) {
        size_t end = r.at;
        while (end < len && hfsbi_is_name_byte(text[end])) end++;
        if (end > r.at) hfsbi_redact_word(&r, end);
        else if (len - r.at > 3 && memcmp(text + r.at, "://", 3) == 0)
            hfsbi_redact_userinfo(&r);
        else hfsbi_redaction_keep(&r, r.at + 1);
    }
    if (r.to < len) text[r.to] = '\0';
    return r.to;
}
