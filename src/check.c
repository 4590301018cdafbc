/* check.c - what to tell about a file that was just written. Depends on: base,
   utf8, json, hash, path, proc. */
#include "check.h"

#define HFSBI_CHECK_TIMEOUT_MS 10000
#define HFSBI_CHECK_PROGRAM    ((size_t)1024 * 1024)      /* longest content */
#define HFSBI_CHECK_JSON       ((size_t)16 * 1024 * 1024) /* longest content */
#define HFSBI_CHECK_LINE       400 /* characters of a warning */

/* ---- what all checks need ---- */

HFSBI_FN bool hfsbi_check_tell(hfsb_buf *lines, hfsb_str text) {
    hfsbi_sink sink = hfsbi_sink_begin(lines);
    hfsb_err   line;
    hfsbi_ok(&line);
    hfsbi_err_quote(&line, text, HFSBI_CHECK_LINE);
    hfsbi_put(&sink, hfsb_cstr(line.msg));
    hfsbi_put_byte(&sink, '\n');
    return hfsbi_sink_end(&sink) == HFSB_OK;
}

/* ---- what was found before ---- */

static void hfsbi_check_digest(const char *program, hfsb_str content,
                               unsigned char digest[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_str_make(program, strlen(program) + 1));
    hfsb_sha256_write(&sha, content);
    hfsb_sha256_finish(&sha, digest);
}

/* The entry for digest, or NULL; with the lock held. */
static hfsbi_check_seen *
hfsbi_check_find(hfsbi_checker      *checker,
                 const unsigned char digest[HFSB_SHA256_SIZE]) {
    size_t i;
    for (i = 0; i < HFSBI_CHECK_MEMORY; i++) {
        hfsbi_check_seen *seen = &checker->seen[i];
        if (seen->used &&
            memcmp(seen->digest, digest, sizeof seen->digest) == 0)
            return seen;
    }
    return NULL;
}

/* Appends what is known to *lines; false when nothing is known. */
static bool hfsbi_check_recall(hfsbi_checker      *checker,
                               const unsigned char digest[HFSB_SHA256_SIZE],
                               hfsb_buf           *lines) {
    hfsbi_check_seen *seen;
    hfsb_str          text;
    (void)pthread_mutex_lock(&checker->lock);
    seen = hfsbi_check_find(checker, digest);
    if (seen) {
        seen->used = ++checker->clock;
        text = hfsb_str_make(seen->text, seen->len);
        (void)!hfsb_buf_append(lines, text); /* no memory: not told */
    }
    (void)pthread_mutex_unlock(&checker->lock);
    return seen != NULL;
}

/* Puts text in the place of what was not asked for the longest; with the lock
   held. */
static void hfsbi_check_store(hfsbi_checker      *checker,
                              const unsigned char digest[HFSB_SHA256_SIZE],
                              hfsb_str            text) {
    hfsbi_check_seen *oldest = checker->seen;
    char             *copy = hfsbi_terminated(&checker->alloc, text);
    size_t            i;
    if (!copy) return;
    for (i = 1; i < HFSBI_CHECK_MEMORY; i++)
        if (checker->seen[i].used < oldest->used) oldest = &checker->seen[i];
    if (oldest->used)
        hfsbi_array_free(&checker->alloc, oldest->text, oldest->len + 1, 1);
    memcpy(oldest->digest, digest, sizeof oldest->digest);
    oldest->text = copy;
    oldest->len = text.len;
    oldest->used = ++checker->clock;
}

static void hfsbi_check_remember(hfsbi_checker      *checker,
                                 const unsigned char digest[HFSB_SHA256_SIZE],
                                 hfsb_str            text) {
    (void)pthread_mutex_lock(&checker->lock);
    if (!hfsbi_check_find(checker, digest)) /* no other thread was faster */
        hfsbi_check_store(checker, digest, text);
    (void)pthread_mutex_unlock(&checker->lock);
}

/* What program says of content: from memory, or by running it. */
static void hfsbi_check_ask(hfsbi_checker *checker, const hfsb_call_opts *how,
                            const char *program, hfsb_str content,
                            hfsb_buf *lines) {
    unsigned char digest[HFSB_SHA256_SIZE];
    bool          whole;
    if (content.len > HFSBI_CHECK_PROGRAM) return;
    hfsbi_check_digest(program, content, digest);
    if (hfsbi_check_recall(checker, digest, lines)) return;
    if (strcmp(program, "python3") == 0)
        whole = hfsbi_check_python(checker, how, content, lines);
    else whole = hfsbi_check_shell(checker, how, program, content, lines);
    if (whole) hfsbi_check_remember(checker, digest, hfsb_buf_str(lines));
}

/* ---- the checks that are built in ---- */

static bool hfsbi_check_has(hfsb_str content, const char *word) {
    return hfsb_str_find(content, hfsb_cstr(word)) != HFSB_NPOS;
}

/* A training script that does not say where its model goes loses it with the
   machine. */
static void hfsbi_check_training(hfsb_str content, hfsb_buf *lines) {
    if (!hfsbi_check_has(content, "TrainingArguments") &&
        !hfsbi_check_has(content, "SFTConfig") &&
        !hfsbi_check_has(content, "DPOConfig") &&
        !hfsbi_check_has(content, "GRPOConfig"))
        return;
    if (!hfsbi_check_has(content, "push_to_hub"))
        (void)hfsbi_check_tell(lines, HFSB_LIT("Training script warning: no "
                                               "'push_to_hub' found"));
    if (!hfsbi_check_has(content, "hub_model_id"))
        (void)hfsbi_check_tell(lines, HFSB_LIT("Training script warning: no "
                                               "'hub_model_id' found"));
}

static void hfsbi_check_py(hfsbi_checker *checker, const hfsb_call_opts *how,
                           hfsb_str content, hfsb_buf *lines) {
    hfsbi_check_ask(checker, how, "python3", content, lines);
    if (!hfsb_str_starts(hfsb_buf_str(lines), HFSB_LIT("Python syntax error")))
        hfsbi_check_training(content, lines);
}

/* Files of programs that allow comments in their JSON. */
static bool hfsbi_check_comments(hfsb_str path) {
    static const char *const starts[] = {"tsconfig.", "jsconfig.",
                                         "devcontainer.", ".eslintrc."};
    hfsb_str                 base = hfsb_path_base(path), dir;
    size_t                   i;
    for (i = 0; i < sizeof starts / sizeof *starts; i++)
        if (hfsb_str_starts(base, hfsb_cstr(starts[i]))) return true;
    if (base.len == path.len) return false;
    dir = hfsb_path_base(hfsb_str_slice(path, 0, path.len - base.len - 1));
    return hfsb_str_equal(dir, HFSB_LIT(".vscode"));
}

static void hfsbi_check_json(hfsb_str path, hfsb_str content,
                             hfsb_buf *lines) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    hfsb_err      err;
    if (content.len > HFSBI_CHECK_JSON || hfsbi_check_comments(path)) return;
    doc.alloc = text.alloc = lines->alloc;
    /* The message starts with line and column. Nested too deep for us, or no
       memory: that is not the file's fault. */
    if (hfsb_json_parse(content, NULL, &doc, &err) == HFSB_SYNTAX &&
        hfsb_buf_printf(&text, "JSON error at %s", err.msg) == HFSB_OK)
        (void)hfsbi_check_tell(lines, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    hfsb_json_free(&doc);
}

/* ---- all of it ---- */

static bool hfsbi_check_is_for(hfsb_str path, hfsb_str suffix) {
    hfsb_str base = hfsb_path_base(path);
    return base.len > suffix.len && hfsb_str_ends(base, suffix);
}

/* Moves the lines to *warnings, one by one as far as there is room. */
static void hfsbi_check_move(hfsb_buf *lines, hfsb_buf *warnings) {
    hfsb_str text = hfsb_buf_str(lines), line;
    while (hfsb_text_line(&text, &line, NULL)) {
        hfsbi_sink sink = hfsbi_sink_begin(warnings);
        if (line.len == 0) continue;
        hfsbi_put(&sink, line);
        hfsbi_put_byte(&sink, '\n');
        if (hfsbi_sink_end(&sink) != HFSB_OK) break;
    }
    hfsb_buf_truncate(lines, 0);
}

/* Copies the caller's checks, and the suffixes they point to. */
static bool hfsbi_checker_copy(hfsbi_checker          *checker,
                               const hfsb_tools_check *checks, size_t count) {
    const char *suffix;
    size_t      i;
    checker->checks = (hfsb_tools_check *)hfsbi_array(&checker->alloc, count,
                                                      sizeof *checker->checks);
    if (!checker->checks) return false;
    checker->count = count;
    for (i = 0; i < count; i++) {
        suffix = checks[i].suffix ? checks[i].suffix : "";
        if (hfsb_buf_append(&checker->suffixes,
                            hfsb_str_make(suffix, strlen(suffix) + 1)) !=
            HFSB_OK)
            return false;
    }
    suffix = checker->suffixes.ptr; /* stays where it is from now on */
    for (i = 0; i < count; i++) {
        checker->checks[i] = checks[i];
        checker->checks[i].suffix = suffix;
        suffix += strlen(suffix) + 1;
    }
    return true;
}

HFSBI_FN hfsbi_checker *hfsbi_checker_open(const hfsb_tools_check *checks,
                                           size_t                  count,
                                           const hfsb_alloc       *alloc) {
    hfsb_alloc     none = HFSB_INIT;
    hfsbi_checker *checker;
    if (!alloc) alloc = &none;
    checker = (hfsbi_checker *)hfsbi_array(alloc, 1, sizeof *checker);
    if (!checker) return NULL;
    memset(checker, 0, sizeof *checker);
    checker->alloc = checker->suffixes.alloc = *alloc;
    checker->timeout_ms = HFSBI_CHECK_TIMEOUT_MS;
    if (pthread_mutex_init(&checker->lock, NULL) != 0) {
        hfsbi_array_free(alloc, checker, 1, sizeof *checker);
        return NULL;
    }
    if (count == 0 || hfsbi_checker_copy(checker, checks, count))
        return checker;
    hfsbi_checker_close(checker);
    return NULL;
}

HFSBI_FN void hfsbi_checker_close(hfsbi_checker *checker) {
    hfsb_alloc alloc;
    size_t     i;
    if (!checker) return;
    alloc = checker->alloc;
    for (i = 0; i < HFSBI_CHECK_MEMORY; i++)
        if (checker->seen[i].used)
            hfsbi_array_free(&alloc, checker->seen[i].text,
                             checker->seen[i].len + 1, 1);
    hfsbi_array_free(&alloc, checker->checks, checker->count,
                     sizeof *checker->checks);
    hfsb_buf_free(&checker->suffixes);
    (void)pthread_mutex_destroy(&checker->lock);
    hfsbi_array_free(&alloc, checker, 1, sizeof *checker);
}

/* The built-in checks; what they tell goes to *warnings by way of *lines. */
static void hfsbi_check_built_in(hfsbi_checker        *checker,
                                 const hfsb_call_opts *how, hfsb_str path,
                                 hfsb_str content, hfsb_buf *lines,
                                 hfsb_buf *warnings) {
    const char *shell = hfsbi_check_shell_of(content);
    if (hfsbi_check_is_for(path, HFSB_LIT(".py")))
        hfsbi_check_py(checker, how, content, lines);
    if (hfsbi_check_is_for(path, HFSB_LIT(".json")))
        hfsbi_check_json(path, content, lines);
    hfsbi_check_move(lines, warnings);
    if (shell) hfsbi_check_ask(checker, how, shell, content, lines);
    hfsbi_check_move(lines, warnings);
}

HFSBI_FN void hfsbi_checker_run(hfsbi_checker        *checker,
                                const hfsb_call_opts *how, hfsb_str path,
                                hfsb_str content, hfsb_buf *warnings) {
    const hfsb_tools_check *check = checker->checks;
    hfsb_buf                lines = HFSB_INIT;
    size_t                  left = checker->count;
    lines.alloc = warnings->alloc;
    while (left > 0 && !hfsbi_check_is_for(path, hfsb_cstr(check->suffix))) {
        check++;
        left--;
    }
    if (left == 0) {
        hfsbi_check_built_in(checker, how, path, content, &lines, warnings);
    } else if (check->fn) {
        if (check->fn(check->user, path, content, &lines) != HFSB_OK)
            hfsb_buf_truncate(&lines, 0);
        hfsbi_check_move(&lines, warnings);
    }
    hfsb_buf_free(&lines);
}
