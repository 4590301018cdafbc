/* session_jobs_run.c - hf_jobs run: what a model asks for becomes a job.
   Depends on: path, hub_jobs, session_script. */
#include "session_parts.h"

/* ---- lists of texts ---- */

/* The elements of an array, or key and value of each member of an object, as
   texts: numbers and booleans become what JSON writes for them. */
typedef struct hfsbi_words {
    hfsb_json_doc sent; /* the value, when it came as a string */
    hfsb_json_doc doc;  /* owns the texts */
    hfsb_str     *list;
    size_t        count;
} hfsbi_words;

static void hfsbi_words_free(hfsbi_words *words, const hfsb_alloc *alloc) {
    hfsb_json_free(&words->sent);
    hfsb_json_free(&words->doc);
    hfsbi_array_free(alloc, words->list, words->count, sizeof *words->list);
}

static hfsb_status hfsbi_words_put(hfsb_json_writer      *w,
                                   const hfsb_json_value *value,
                                   const char *key, const hfsb_alloc *alloc,
                                   hfsb_err *err) {
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_buf       text = HFSB_INIT;
    hfsb_status    st = HFSB_OK;
    if (type == HFSB_JSON_NULL || type == HFSB_JSON_ARRAY ||
        type == HFSB_JSON_OBJECT)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"%s\": expected strings in it, found %s", key,
                          hfsb_json_type_name(type));
    text.alloc = *alloc;
    if (type == HFSB_JSON_STRING)
        hfsb_json_put_str(w, hfsb_json_str(value, HFSB_LIT("")));
    else {
        st = hfsb_json_write(value, NULL, &text, err);
        hfsb_json_put_str(w, hfsb_buf_str(&text));
    }
    hfsb_buf_free(&text);
    return st;
}

static hfsb_status hfsbi_words_write(const hfsb_json_value *value,
                                     const char *key, hfsb_buf *out,
                                     hfsb_err *err) {
    hfsb_json_iter   it = hfsb_json_begin(value);
    bool             keyed = hfsb_json_type_of(value) == HFSB_JSON_OBJECT;
    hfsb_status      st = HFSB_OK;
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_array(&w);
    while (st == HFSB_OK && hfsb_json_next(&it)) {
        if (keyed) hfsb_json_put_str(&w, it.key);
        st = hfsbi_words_put(&w, it.value, key, &out->alloc, err);
    }
    hfsb_json_put_end(&w);
    return st == HFSB_OK ? hfsb_json_writer_finish(&w, err) : st;
}

/* value may be NULL: no words. */
static hfsb_status hfsbi_words_take(hfsbi_words           *words,
                                    const hfsb_json_value *value,
                                    const char *key, const hfsb_alloc *alloc,
                                    hfsb_err *err) {
    hfsb_buf       text = HFSB_INIT;
    hfsb_json_iter it;
    size_t         n, i = 0;
    hfsb_status    st;
    if (!value) return HFSB_OK;
    text.alloc = words->doc.alloc = *alloc;
    st = hfsbi_words_write(value, key, &text, err);
    if (st == HFSB_OK)
        st = hfsb_json_parse(hfsb_buf_str(&text), NULL, &words->doc, err);
    hfsb_buf_free(&text);
    if (st != HFSB_OK) return st;
    n = hfsb_json_count(words->doc.root);
    if (!n) return HFSB_OK;
    words->list = (hfsb_str *)hfsbi_array(alloc, n, sizeof *words->list);
    if (!words->list) return HFSB_NOMEM;
    words->count = n;
    for (it = hfsb_json_begin(words->doc.root); hfsb_json_next(&it); i++)
        words->list[i] = hfsb_json_str(it.value, HFSB_LIT(""));
    return HFSB_OK;
}

/* A member of the arguments that is to be of that type. */
static hfsb_status hfsbi_words_read(hfsbi_words           *words,
                                    const hfsb_json_value *arguments,
                                    const char *key, hfsb_json_type type,
                                    const hfsb_alloc *alloc, hfsb_err *err) {
    const hfsb_json_value *value = NULL;
    hfsb_status            st;
    words->sent.alloc = *alloc;
    st = hfsb_json_arg_parsed(arguments, key, false, type, &words->sent,
                              &value, err);
    return st == HFSB_OK ? hfsbi_words_take(words, value, key, alloc, err)
                         : st;
}

/* ---- a job that is asked for ---- */

typedef struct hfsbi_wanted {
    hfsbi_hf_jobs_call *call;
    const hfsb_alloc   *alloc;
    hfsb_job_spec       spec;
    hfsbi_words         command, with, args, env, secrets;
    bool                secrets_named; /* by their names only */
    hfsb_hub_pair      *pairs;         /* of env, then of secrets */
    size_t              pair_cap;
    hfsb_buf            script, timeout;
    hfsb_str            shell[3];
} hfsbi_wanted;

static void hfsbi_wanted_free(hfsbi_wanted *wanted) {
    hfsbi_words_free(&wanted->command, wanted->alloc);
    hfsbi_words_free(&wanted->with, wanted->alloc);
    hfsbi_words_free(&wanted->args, wanted->alloc);
    hfsbi_words_free(&wanted->env, wanted->alloc);
    hfsbi_words_free(&wanted->secrets, wanted->alloc);
    hfsbi_array_free(wanted->alloc, wanted->pairs, wanted->pair_cap,
                     sizeof *wanted->pairs);
    hfsb_buf_free(&wanted->script);
    hfsb_buf_free(&wanted->timeout);
}

/* "30m", or seconds as a number. */
static hfsb_status hfsbi_wanted_timeout(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsb_json_value *value =
        hfsb_json_get(wanted->call->arguments, "timeout");
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_status    st;
    if (type == HFSB_JSON_INT || type == HFSB_JSON_DOUBLE) {
        st = hfsb_json_write(value, NULL, &wanted->timeout, err);
        wanted->spec.timeout = hfsb_buf_str(&wanted->timeout);
        return st;
    }
    return hfsb_json_arg_str(wanted->call->arguments, "timeout", false,
                             &wanted->spec.timeout, err);
}

static hfsb_status hfsbi_wanted_texts(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsb_json_value *from = wanted->call->arguments;
    hfsb_job_spec         *spec = &wanted->spec;
    hfsb_status            st = hfsbi_wanted_timeout(wanted, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(from, "image", false, &spec->image, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(from, "hardware_flavor", false, &spec->flavor,
                               err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(from, "python", false, &spec->python, err);
    if (st == HFSB_OK)
        st = hfsbi_words_read(&wanted->with, from, "dependencies",
                              HFSB_JSON_ARRAY, wanted->alloc, err);
    if (st == HFSB_OK)
        st = hfsbi_words_read(&wanted->args, from, "script_args",
                              HFSB_JSON_ARRAY, wanted->alloc, err);
    if (st == HFSB_OK)
        st = hfsbi_words_read(&wanted->env, from, "env", HFSB_JSON_OBJECT,
                              wanted->alloc, err);
    if (!spec->flavor.len) spec->flavor = HFSB_LIT("cpu-basic");
    spec->space = wanted->call->space;
    spec->with = wanted->with.list;
    spec->with_count = wanted->with.count;
    spec->args = wanted->args.list;
    spec->arg_count = wanted->args.count;
    return st;
}

/* ---- secrets: the model names them, the session knows them ---- */

static hfsb_status hfsbi_wanted_secret(hfsbi_wanted *wanted, hfsb_str name,
                                       hfsb_str *value, hfsb_err *err) {
    const hfsb_session *session = wanted->call->session;
    size_t              i;
    for (i = 0; i < session->spec.secret_count; i++)
        if (hfsb_str_equal(session->secrets[i].key, name)) {
            *value = session->secrets[i].value;
            return HFSB_OK;
        }
    hfsbi_fail(err, HFSB_ARG, 0, "\"secrets\": there is no \"");
    hfsbi_err_quote(err, name, 80);
    hfsbi_err_add(err, "\" in this session; it has ");
    for (i = 0; i < session->spec.secret_count; i++) {
        if (i) hfsbi_err_add(err, ", ");
        hfsbi_err_quote(err, session->secrets[i].key, 80);
    }
    hfsbi_err_add(err, ".");
    return HFSB_ARG;
}

/* A value that is empty or "$NAME" stands for the session's. */
static bool hfsbi_wanted_is_ours(hfsb_str name, hfsb_str value) {
    return !value.len ||
           (value.ptr[0] == '$' &&
            hfsb_str_equal(hfsb_str_slice(value, 1, value.len), name));
}

static hfsb_status hfsbi_wanted_put_secrets(hfsbi_wanted  *wanted,
                                            hfsb_hub_pair *pairs,
                                            hfsb_err      *err) {
    size_t      i, step = wanted->secrets_named ? 1 : 2;
    hfsb_status st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i + step <= wanted->secrets.count;
         i += step, pairs++) {
        pairs->key = wanted->secrets.list[i];
        if (step == 2) pairs->value = wanted->secrets.list[i + 1];
        if (hfsbi_wanted_is_ours(pairs->key, pairs->value))
            st = hfsbi_wanted_secret(wanted, pairs->key, &pairs->value, err);
        wanted->spec.secret_count++;
    }
    return st;
}

/* An array of names; an object with values is taken, too. */
static hfsb_status hfsbi_wanted_read_secrets(hfsbi_wanted *wanted,
                                             hfsb_err     *err) {
    const hfsb_json_value *value =
        hfsb_json_get(wanted->call->arguments, "secrets");
    hfsb_str text = hfsbi_trim(hfsb_json_str(value, HFSB_LIT("")));
    wanted->secrets_named = hfsb_json_type_of(value) != HFSB_JSON_OBJECT &&
                            !hfsb_str_starts(text, HFSB_LIT("{"));
    return hfsbi_words_read(
        &wanted->secrets, wanted->call->arguments, "secrets",
        wanted->secrets_named ? HFSB_JSON_ARRAY : HFSB_JSON_OBJECT,
        wanted->alloc, err);
}

/* ---- variables ---- */

/* Bars that are drawn anew fill a log, and a line that waits in a buffer is
   missing there. */
static const char *const hfsbi_wanted_calm[] = {
    "PYTHONUNBUFFERED", "UV_NO_PROGRESS", "HF_HUB_DISABLE_PROGRESS_BARS",
    "TQDM_DISABLE"};

enum {
    HFSBI_WANTED_CALM = sizeof hfsbi_wanted_calm / sizeof *hfsbi_wanted_calm
};

static void hfsbi_wanted_put_env(hfsbi_wanted *wanted, hfsb_hub_pair *pairs) {
    const hfsbi_words *env = &wanted->env;
    size_t             i, k, n = 0;
    for (i = 0; i < HFSBI_WANTED_CALM; i++) {
        hfsb_str name = hfsb_cstr(hfsbi_wanted_calm[i]);
        for (k = 0; k < env->count; k += 2)
            if (hfsb_str_equal(env->list[k], name)) break;
        if (k < env->count) continue;
        pairs[n].key = name;
        pairs[n++].value = HFSB_LIT("1");
    }
    for (k = 0; k + 1 < env->count; k += 2) {
        pairs[n].key = env->list[k];
        pairs[n++].value = env->list[k + 1];
    }
    wanted->spec.env = pairs;
    wanted->spec.env_count = n;
}

/* Both lists of pairs. Without a word about secrets the job gets the token:
   what it makes must get to the Hub. */
static hfsb_status hfsbi_wanted_pairs(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsb_json_value *said =
        hfsb_json_get(wanted->call->arguments, "secrets");
    hfsb_hub_pair *secrets;
    hfsb_status    st = hfsbi_wanted_read_secrets(wanted, err);
    if (st != HFSB_OK) return st;
    wanted->pair_cap =
        HFSBI_WANTED_CALM + wanted->env.count / 2 + wanted->secrets.count + 1;
    wanted->pairs = (hfsb_hub_pair *)hfsbi_array(
        wanted->alloc, wanted->pair_cap, sizeof *wanted->pairs);
    if (!wanted->pairs) return HFSB_NOMEM;
    memset(wanted->pairs, 0, wanted->pair_cap * sizeof *wanted->pairs);
    hfsbi_wanted_put_env(wanted, wanted->pairs);
    secrets = wanted->pairs + wanted->spec.env_count;
    wanted->spec.secrets = secrets;
    if (hfsb_json_type_of(said) != HFSB_JSON_NULL)
        return hfsbi_wanted_put_secrets(wanted, secrets, err);
    secrets->key = HFSB_LIT("HF_TOKEN");
    wanted->spec.secret_count = 1;
    return hfsbi_wanted_secret(wanted, secrets->key, &secrets->value, err);
}

/* ---- script or command ---- */

/* Nothing to run: such a job would cost money all the same. */
static bool hfsbi_wanted_is_blank(hfsb_str text) {
    size_t i = 0;
    while (i < text.len && text.ptr[i] && strchr(" \t\r\n", text.ptr[i])) i++;
    return i == text.len;
}

/* The words of a command, also as the text of a JSON array; false: it is no
   such list. */
static bool hfsbi_wanted_words(hfsbi_wanted *wanted, hfsb_status *st,
                               hfsb_err *err) {
    const hfsb_json_value *from = wanted->call->arguments;
    const hfsb_json_value *value = hfsb_json_get(from, "command");
    *st = hfsbi_words_read(&wanted->command, from, "command", HFSB_JSON_ARRAY,
                           wanted->alloc, err);
    wanted->spec.command = wanted->command.list;
    wanted->spec.command_count = wanted->command.count;
    if (*st == HFSB_OK && !wanted->command.count)
        *st = hfsbi_fail(err, HFSB_ARG, 0, "\"command\" has no words.");
    return *st != HFSB_ARG || hfsb_json_type_of(value) != HFSB_JSON_STRING;
}

static hfsb_status hfsbi_wanted_command(hfsbi_wanted *wanted, hfsb_err *err) {
    hfsb_status st;
    if (wanted->with.count || wanted->args.count || wanted->spec.python.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"dependencies\", \"script_args\" and \"python\" "
                          "go with script, not with command: write them into "
                          "the command line.");
    if (hfsbi_wanted_words(wanted, &st, err)) return st;
    wanted->shell[0] = HFSB_LIT("/bin/sh");
    wanted->shell[1] = HFSB_LIT("-lc");
    wanted->spec.command = wanted->shell;
    wanted->spec.command_count = 3;
    return hfsb_json_arg_str(wanted->call->arguments, "command", true,
                             &wanted->shell[2], err);
}

static bool hfsbi_wanted_is_of_host(hfsb_str script) {
    static const char *const begin[] = {"/home/", "/Users/", "/fsx/"};
    size_t                   i;
    for (i = 0; i < sizeof begin / sizeof *begin; i++)
        if (hfsb_str_starts(script, hfsb_cstr(begin[i]))) return true;
    return false;
}

static hfsb_status hfsbi_wanted_script(hfsbi_wanted *wanted, hfsb_str script,
                                       hfsb_err *err) {
    hfsbi_hf_jobs_call *c = wanted->call;
    hfsb_script_kind    kind;
    hfsb_status st = hfsb_session_script(c->session, script, &kind, c->cancel,
                                         &wanted->script, err);
    if (st != HFSB_OK) {
        if (hfsbi_wanted_is_of_host(script))
            hfsbi_err_add(err, " (It looks like a path of the host, which no "
                               "sandbox and no job can see: write the file "
                               "into the sandbox first, or give its text.)");
        return st;
    }
    wanted->spec.script = hfsb_buf_str(&wanted->script);
    wanted->spec.is_source = kind == HFSB_SCRIPT_INLINE;
    if (hfsbi_wanted_is_blank(wanted->spec.script))
        return hfsbi_fail(err, HFSB_ARG, 0, "The script is empty.");
    return HFSB_OK;
}

/* Exactly one of the two. */
static hfsb_status hfsbi_wanted_work(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsb_json_value *from = wanted->call->arguments;
    const hfsb_json_value *command = hfsb_json_get(from, "command");
    hfsb_str               script = HFSB_LIT("");
    bool                   is_command;
    hfsb_status            st;
    st = hfsb_json_arg_str(from, "script", false, &script, err);
    if (st != HFSB_OK) return st;
    is_command = hfsb_json_type_of(command) != HFSB_JSON_NULL &&
                 (hfsb_json_type_of(command) != HFSB_JSON_STRING ||
                  !hfsbi_wanted_is_blank(hfsb_json_str(command, script)));
    if (is_command && script.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"script\" and \"command\" are both given: "
                          "expected one of them.");
    if (is_command) return hfsbi_wanted_command(wanted, err);
    if (script.len) return hfsbi_wanted_script(wanted, script, err);
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "\"script\" is missing: operation run needs it (Python "
                      "source, a file of the sandbox or a URL), or a "
                      "\"command\".");
}

/* ---- running it ---- */

/* What the Hub has had; it gets more of them, so any name is sent. */
static const char hfsbi_flavors[] =
    "cpu-basic cpu-upgrade cpu-performance cpu-xl t4-small t4-medium l4x1 "
    "l4x4 l40sx1 l40sx4 l40sx8 a10g-small a10g-large a10g-largex2 "
    "a10g-largex4 a100-large a100x4 a100x8 h200 h200x2 h200x4 h200x8 ";

static bool hfsbi_flavor_is_known(hfsb_str flavor) {
    hfsb_str rest = hfsb_cstr(hfsbi_flavors);
    while (rest.len) {
        size_t end = hfsb_str_find_byte(rest, ' ');
        if (hfsb_str_equal(hfsb_str_slice(rest, 0, end), flavor)) return true;
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    }
    return false;
}

/* A refusal may be due to hardware that we have never heard of. */
static void hfsbi_wanted_hint(const hfsbi_wanted *wanted, hfsb_status st,
                              hfsb_err *err) {
    bool refused = st == HFSB_ARG || st == HFSB_REFUSED || st == HFSB_REMOTE ||
                   st == HFSB_NOT_FOUND || st == HFSB_CONFLICT;
    if (!refused || hfsbi_flavor_is_known(wanted->spec.flavor)) return;
    hfsbi_err_add(err, " Perhaps there is no hardware \"");
    hfsbi_err_quote(err, wanted->spec.flavor, 40);
    hfsbi_err_add(err, "\"; known are: %.*s.", (int)sizeof hfsbi_flavors - 2,
                  hfsbi_flavors);
}

static hfsb_status hfsbi_wanted_send(hfsbi_wanted *wanted, hfsb_json_doc *job,
                                     hfsb_err *err) {
    hfsbi_hf_jobs_call *c = wanted->call;
    hfsb_hub           *hub = c->session->opts.hub;
    hfsb_status         st;
    if (wanted->spec.command_count)
        st = hfsb_hub_job_run(hub, &wanted->spec, c->cancel, job, err);
    else st = hfsb_hub_job_script(hub, &wanted->spec, c->cancel, job, err);
    if (st != HFSB_OK) hfsbi_wanted_hint(wanted, st, err);
    return st;
}

static hfsb_status hfsbi_wanted_tell(hfsbi_wanted          *wanted,
                                     const hfsb_json_value *job,
                                     hfsb_err              *err) {
    hfsbi_hf_jobs_call *c = wanted->call;
    hfsb_str            id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str            stage = hfsbi_hf_jobs_stage(job);
    hfsb_str            flavor = wanted->spec.flavor;
    hfsb_status         st = hfsbi_hf_jobs_extra(c, job, err);
    if (st == HFSB_REMOTE)
        hfsbi_err_add(err, " It may run all the same: look with ps before "
                           "you run it again.");
    if (st != HFSB_OK) return st;
    hfsbi_session_log(c->session, "Started job %.*s on %.*s", (int)id.len,
                      id.ptr, (int)flavor.len, flavor.ptr);
    return hfsbi_result_ok(
        c->result,
        "Job %.*s was started on %.*s (%.*s). Its logs and inspect take this "
        "job_id%s.",
        (int)id.len, id.ptr, (int)flavor.len, flavor.ptr, (int)stage.len,
        stage.ptr, c->space.len ? " and namespace" : "");
}

HFSBI_FN hfsb_status hfsbi_hf_jobs_run(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_json_doc job = HFSB_INIT;
    hfsbi_wanted  wanted;
    hfsb_status   st;
    memset(&wanted, 0, sizeof wanted);
    wanted.call = c;
    wanted.alloc = &c->session->alloc;
    wanted.script.alloc = wanted.timeout.alloc = c->session->alloc;
    job.alloc = c->session->alloc;
    st = hfsbi_wanted_texts(&wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_pairs(&wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_work(&wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_send(&wanted, &job, err);
    if (st == HFSB_OK) st = hfsbi_wanted_tell(&wanted, job.root, err);
    hfsb_json_free(&job);
    hfsbi_wanted_free(&wanted);
    return st;
}
