/* hf_jobs.c - hf_jobs: jobs on the Hub, for a model.

   run starts a job from a script or a command, or with a schedule makes a
   scheduled job; ps lists jobs, logs shows what one printed so far, inspect
   and cancel take a job_id. scheduled_... do the same for scheduled jobs.

   run makes a hfsbi_wanted of the arguments, which owns all that the job's
   spec points to: one document with the lists as texts, and one array of views
   of them. A script may be source text, a URL, or a file of the sandbox, whose
   content is sent. The model names secrets, and the session, which knows their
   values, fills them in.

   Anything that the Hub or a job printed is shown without the session's
   secrets. Text is masked before it is cut, so that no part of a secret
   remains. */
#include "hub_private.h"

enum {
    HFSBI_HF_JOBS_TEXT = 200,      /* characters of a name on the Hub */
    HFSBI_HF_JOBS_COMMAND = 300,   /* characters of a command */
    HFSBI_HF_JOBS_LISTED = 50,     /* jobs by ps */
    HFSBI_HF_JOBS_LABELS = 16,     /* by which ps selects */
    HFSBI_HF_JOBS_LINES = 2000,    /* of a log that are read */
    HFSBI_HF_JOBS_CHARS = 40000,   /* of a log that are shown, */
    HFSBI_HF_JOBS_HEAD = 1000,     /* this many of them from its start */
    HFSBI_HF_JOBS_IDLE_MS = 3000,  /* of silence end the reading of a log, */
    HFSBI_HF_JOBS_TOTAL_MS = 8000, /* and this in any case */
    HFSBI_HF_JOBS_NAME = 80        /* characters of an unknown operation */
};

/* command is a string or a list, secrets a list or an object. */
typedef struct hfsbi_hf_jobs_args {
    hfsb_str operation, script, python, image, flavor, timeout, id, space;
    hfsb_str name, stage, schedule;
    const hfsb_json_value *with, *args, *env, *labels, *volumes, *ports;
} hfsbi_hf_jobs_args;

typedef struct hfsbi_hf_jobs_call {
    hfsb_session             *session;
    const hfsb_json_value    *arguments;
    const hfsbi_hf_jobs_args *args;
    const hfsb_cancel        *cancel;
    hfsb_tool_result         *result;
    hfsb_str                  id, space; /* job_id and namespace, or empty */
    hfsb_scheduled            what;      /* to do with a scheduled job */
    hfsb_json_doc             job;       /* as the Hub describes it */
    hfsb_buf                  text;      /* becomes the output, masked */
} hfsbi_hf_jobs_call;

/* ---- a job as the Hub describes it ---- */

/* A text member of a job, cut to a sane length; "" if there is none. */
static hfsb_str hfsbi_hf_jobs_text(const hfsb_json_value *job,
                                   const char            *key) {
    hfsb_str text = hfsbi_json_get_str(job, key);
    return hfsb_str_slice(text, 0, hfsb_utf8_offset(text, HFSBI_HF_JOBS_TEXT));
}

static hfsb_str hfsbi_hf_jobs_stage(const hfsb_json_value *job) {
    return hfsbi_hf_jobs_text(hfsb_json_get(job, "status"), "stage");
}

static bool hfsbi_hf_jobs_is_over(hfsb_str stage) {
    return !hfsb_str_equal(stage, HFSB_LIT("SCHEDULING")) &&
           !hfsb_str_equal(stage, HFSB_LIT("RUNNING")) &&
           !hfsb_str_equal(stage, HFSB_LIT("UPDATING"));
}

/* Adds id, stage and url of the job to the result. */
static hfsb_status hfsbi_hf_jobs_fields(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    const hfsb_json_value *job = c->job.root;
    hfsb_str               id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str               stage = hfsbi_hf_jobs_stage(job);
    hfsb_str owner = hfsbi_hf_jobs_text(hfsb_json_get(job, "owner"), "name");
    hfsb_str endpoint = hfsb_hub_endpoint(c->session->opts.hub);
    hfsb_buf url = HFSB_INIT;
    hfsb_status st;
    hfsbi_build fields;
    if (!id.len || !stage.len)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub accepted the request but returned no job "
                          "id.");
    url.alloc = c->session->alloc;
    st = hfsb_buf_printf(&url, "%.*s/jobs/%.*s/%.*s", (int)endpoint.len,
                         endpoint.ptr, (int)owner.len, owner.ptr, (int)id.len,
                         id.ptr);
    if (st == HFSB_OK) {
        hfsbi_build_init(&fields, &c->session->alloc);
        hfsbi_build_object(&fields, NULL);
        hfsbi_build_str(&fields, "id", id);
        hfsbi_build_str(&fields, "stage", stage);
        hfsbi_build_str(&fields, "url", hfsb_buf_str(&url));
        hfsbi_build_end(&fields);
        hfsb_json_free(&c->result->fields);
        st = hfsbi_build_finish(&fields, &c->result->fields);
    }
    hfsb_buf_free(&url);
    return st;
}

/* Appends a text without the session's secrets. */
static hfsb_status hfsbi_hf_jobs_mask(const hfsbi_hf_jobs_call *c,
                                      hfsb_str text, hfsb_buf *out) {
    return hfsbi_hub_redact(c->session->opts.hub, c->session->secrets,
                            c->session->spec.secret_count, text, out);
}

/* Adds at most max characters of a text, masked before it is cut, on one
   line. */
static void hfsbi_hf_jobs_put(hfsbi_hf_jobs_call *c, hfsb_str text,
                              size_t max) {
    hfsb_buf    masked = HFSB_INIT;
    hfsb_err    line = HFSB_INIT;
    hfsb_status st;
    masked.alloc = c->session->alloc;
    st = hfsbi_hf_jobs_mask(c, text, &masked);
    hfsbi_err_quote(&line, hfsb_buf_str(&masked), max);
    hfsb_buf_free(&masked);
    if (st == HFSB_OK) hfsb_buf_append(&c->text, hfsb_cstr(line.msg));
    else if (c->text.status == HFSB_OK) c->text.status = st;
}

/* Adds the words of a job's command. */
static void hfsbi_hf_jobs_put_command(hfsbi_hf_jobs_call    *c,
                                      const hfsb_json_value *job, size_t max) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(job, "command"));
    hfsb_buf       line = HFSB_INIT;
    line.alloc = c->session->alloc;
    while (hfsb_json_next(&it)) {
        if (line.len) hfsb_buf_append_byte(&line, ' ');
        hfsb_buf_append(&line, hfsb_json_str(it.value, HFSB_LIT("")));
    }
    if (line.status == HFSB_OK) hfsbi_hf_jobs_put(c, hfsb_buf_str(&line), max);
    else c->text.status = line.status;
    hfsb_buf_free(&line);
}

/* ---- run: lists of texts ---- */

/* The lists of a job, in the order in which they are copied. */
typedef enum hfsbi_wanted_list {
    HFSBI_WANTED_COMMAND,
    HFSBI_WANTED_WITH,
    HFSBI_WANTED_ARGS,
    HFSBI_WANTED_ENV,    /* key, value, key, value ... */
    HFSBI_WANTED_LABELS, /* the same */
    HFSBI_WANTED_VOLUMES,
    HFSBI_WANTED_PORTS,
    HFSBI_WANTED_SECRETS, /* keys and values, or names alone */
    HFSBI_WANTED_LISTS
} hfsbi_wanted_list;

typedef struct hfsbi_words {
    const hfsb_str *list;
    size_t          count;
} hfsbi_words;

typedef struct hfsbi_wanted {
    hfsbi_hf_jobs_call *call;
    const hfsb_alloc   *alloc;
    hfsb_job_spec       spec;
    hfsbi_build         lists;  /* makes doc; */
    hfsb_status         status; /* its first failure, */
    hfsb_err           *err;    /* and the message */
    hfsb_json_doc       doc;    /* the lists: an array of arrays of texts */
    hfsb_str           *texts;  /* all of them, in one array */
    size_t              text_count;
    hfsbi_words         words[HFSBI_WANTED_LISTS]; /* views of texts */
    bool                secrets_named;             /* by their names only */
    hfsb_hub_pair      *pairs; /* of env, then of labels, then of secrets */
    size_t              pair_cap;
    hfsb_job_volume    *volumes;
    unsigned           *ports;
    hfsb_buf            script;
} hfsbi_wanted;

static void hfsbi_wanted_free(hfsbi_wanted *wanted) {
    hfsb_json_free(&wanted->doc);
    hfsbi_array_free(wanted->alloc, wanted->texts, wanted->text_count,
                     sizeof *wanted->texts);
    hfsbi_array_free(wanted->alloc, wanted->pairs, wanted->pair_cap,
                     sizeof *wanted->pairs);
    hfsbi_array_free(wanted->alloc, wanted->volumes,
                     wanted->words[HFSBI_WANTED_VOLUMES].count,
                     sizeof *wanted->volumes);
    hfsbi_array_free(wanted->alloc, wanted->ports,
                     wanted->words[HFSBI_WANTED_PORTS].count,
                     sizeof *wanted->ports);
    hfsb_buf_free(&wanted->script);
}

/* Adds a text to the open list; numbers and booleans become their JSON text.
   key names the argument in a message. */
static void hfsbi_wanted_put(hfsbi_wanted          *wanted,
                             const hfsb_json_value *value, const char *key) {
    hfsb_json_type type = hfsb_json_type_of(value);
    hfsb_buf       text = HFSB_INIT;
    if (type == HFSB_JSON_NULL || type == HFSB_JSON_ARRAY ||
        type == HFSB_JSON_OBJECT) {
        wanted->status = hfsbi_fail(wanted->err, HFSB_ARG, 0,
                                    "\"%s\": expected strings in it, found %s",
                                    key, hfsb_json_type_name(type));
    } else if (type == HFSB_JSON_STRING) {
        hfsbi_build_value(&wanted->lists, NULL, value);
    } else {
        text.alloc = *wanted->alloc;
        wanted->status = hfsb_json_write(value, NULL, &text, wanted->err);
        hfsbi_build_str(&wanted->lists, NULL, hfsb_buf_str(&text));
        hfsb_buf_free(&text);
    }
}

/* Adds one list: the elements of an array, or key and value of each member of
   an object; NULL has none. */
static void hfsbi_wanted_put_list(hfsbi_wanted          *wanted,
                                  const hfsb_json_value *value,
                                  const char            *key) {
    hfsb_json_iter it = hfsb_json_begin(value);
    bool           keyed = hfsb_json_type_of(value) == HFSB_JSON_OBJECT;
    hfsbi_build_array(&wanted->lists, NULL);
    while (wanted->status == HFSB_OK && hfsb_json_next(&it)) {
        if (keyed) hfsbi_build_str(&wanted->lists, NULL, it.key);
        hfsbi_wanted_put(wanted, it.value, key);
    }
    hfsbi_build_end(&wanted->lists);
}

/* Adds an argument that is a list of this type, or the JSON text of one. False
   for any other text. */
static bool hfsbi_wanted_put_given(hfsbi_wanted *wanted, const char *key,
                                   hfsb_json_type type) {
    const hfsb_json_value *from = wanted->call->arguments, *value = NULL;
    const hfsb_json_value *given = hfsb_json_get(from, key);
    hfsb_json_doc          sent = HFSB_INIT;
    hfsb_status            st;
    sent.alloc = *wanted->alloc;
    st = hfsb_json_arg_parsed(from, key, false, type, &sent, &value,
                              wanted->err);
    if (st == HFSB_OK) hfsbi_wanted_put_list(wanted, value, key);
    else wanted->status = st;
    hfsb_json_free(&sent);
    return st != HFSB_ARG || hfsb_json_type_of(given) != HFSB_JSON_STRING;
}

/* Adds the command: words, or a text for the shell. */
static void hfsbi_wanted_put_command(hfsbi_wanted *wanted) {
    hfsbi_build *lists = &wanted->lists;
    if (hfsbi_wanted_put_given(wanted, "command", HFSB_JSON_ARRAY)) return;
    wanted->status = HFSB_OK;
    hfsbi_build_array(lists, NULL);
    hfsbi_build_str(lists, NULL, HFSB_LIT("/bin/sh"));
    hfsbi_build_str(lists, NULL, HFSB_LIT("-lc"));
    hfsbi_build_value(lists, NULL,
                      hfsb_json_get(wanted->call->arguments, "command"));
    hfsbi_build_end(lists);
}

/* Adds the secrets: a list of names; an object with values is accepted, too. */
static void hfsbi_wanted_put_secrets(hfsbi_wanted *wanted) {
    const hfsb_json_value *given =
        hfsb_json_get(wanted->call->arguments, "secrets");
    hfsb_str text = hfsbi_trim(hfsb_json_str(given, HFSB_LIT("")));
    wanted->secrets_named = hfsb_json_type_of(given) != HFSB_JSON_OBJECT &&
                            !hfsb_str_starts(text, HFSB_LIT("{"));
    (void)hfsbi_wanted_put_given(wanted, "secrets",
                                 wanted->secrets_named ? HFSB_JSON_ARRAY
                                                       : HFSB_JSON_OBJECT);
}

/* Makes wanted->doc, in the order of hfsbi_wanted_list. */
static hfsb_status hfsbi_wanted_copy(hfsbi_wanted *wanted, bool is_command) {
    const hfsbi_hf_jobs_args *a = wanted->call->args;
    hfsbi_build              *lists = &wanted->lists;
    hfsbi_build_init(lists, wanted->alloc);
    hfsbi_build_array(lists, NULL);
    if (is_command) hfsbi_wanted_put_command(wanted);
    else hfsbi_wanted_put_list(wanted, NULL, "command");
    hfsbi_wanted_put_list(wanted, a->with, "dependencies");
    hfsbi_wanted_put_list(wanted, a->args, "script_args");
    hfsbi_wanted_put_list(wanted, a->env, "env");
    hfsbi_wanted_put_list(wanted, a->labels, "labels");
    hfsbi_wanted_put_list(wanted, a->volumes, "volumes");
    hfsbi_wanted_put_list(wanted, a->ports, "ports");
    if (wanted->status == HFSB_OK) hfsbi_wanted_put_secrets(wanted);
    hfsbi_build_end(lists);
    if (wanted->status == HFSB_OK)
        wanted->status = hfsbi_build_finish(lists, &wanted->doc);
    hfsbi_build_free(lists);
    return wanted->status;
}

/* Fills the lists of the spec. */
static hfsb_status hfsbi_wanted_lists(hfsbi_wanted *wanted, bool is_command) {
    hfsb_job_spec *spec = &wanted->spec;
    hfsbi_words   *words = wanted->words;
    hfsb_str      *to;
    hfsb_json_iter list, it;
    hfsb_status    st = hfsbi_wanted_copy(wanted, is_command);
    if (st != HFSB_OK) return st;
    for (list = hfsb_json_begin(wanted->doc.root); hfsb_json_next(&list);)
        wanted->text_count += hfsb_json_count(list.value);
    wanted->texts = to = (hfsb_str *)hfsbi_array(
        wanted->alloc, wanted->text_count, sizeof *wanted->texts);
    if (!to && wanted->text_count) return HFSB_NOMEM;
    for (list = hfsb_json_begin(wanted->doc.root); hfsb_json_next(&list);) {
        words->list = to;
        words->count = hfsb_json_count(list.value);
        for (it = hfsb_json_begin(list.value); hfsb_json_next(&it);)
            *to++ = hfsb_json_str(it.value, HFSB_LIT(""));
        words++;
    }
    spec->command = wanted->words[HFSBI_WANTED_COMMAND].list;
    spec->command_count = wanted->words[HFSBI_WANTED_COMMAND].count;
    spec->with = wanted->words[HFSBI_WANTED_WITH].list;
    spec->with_count = wanted->words[HFSBI_WANTED_WITH].count;
    spec->args = wanted->words[HFSBI_WANTED_ARGS].list;
    spec->arg_count = wanted->words[HFSBI_WANTED_ARGS].count;
    return HFSB_OK;
}

/* ---- run: secrets and variables ---- */

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

/* True when the session provides the value: it is empty or "$NAME". */
static bool hfsbi_wanted_is_ours(hfsb_str name, hfsb_str value) {
    return !value.len ||
           (value.ptr[0] == '$' &&
            hfsb_str_equal(hfsb_str_slice(value, 1, value.len), name));
}

static hfsb_status hfsbi_wanted_fill_secrets(hfsbi_wanted  *wanted,
                                             hfsb_hub_pair *pairs,
                                             hfsb_err      *err) {
    const hfsbi_words *secrets = &wanted->words[HFSBI_WANTED_SECRETS];
    size_t             i, step = wanted->secrets_named ? 1 : 2;
    hfsb_status        st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i + step <= secrets->count;
         i += step, pairs++) {
        pairs->key = secrets->list[i];
        if (step == 2) pairs->value = secrets->list[i + 1];
        if (hfsbi_wanted_is_ours(pairs->key, pairs->value))
            st = hfsbi_wanted_secret(wanted, pairs->key, &pairs->value, err);
        wanted->spec.secret_count++;
    }
    return st;
}

/* Progress bars fill a log, and a line that waits in a buffer is missing from
   it. These are set to 1 unless the model sets them. */
static const char *const hfsbi_wanted_calm[] = {
    "PYTHONUNBUFFERED", "UV_NO_PROGRESS", "HF_HUB_DISABLE_PROGRESS_BARS",
    "TQDM_DISABLE"};

enum {
    HFSBI_WANTED_CALM = sizeof hfsbi_wanted_calm / sizeof *hfsbi_wanted_calm
};

static void hfsbi_wanted_fill_env(hfsbi_wanted *wanted, hfsb_hub_pair *pairs) {
    const hfsbi_words *env = &wanted->words[HFSBI_WANTED_ENV];
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

/* Fills volumes and ports. */
static hfsb_status hfsbi_wanted_mounts(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsbi_words *volumes = &wanted->words[HFSBI_WANTED_VOLUMES];
    const hfsbi_words *ports = &wanted->words[HFSBI_WANTED_PORTS];
    unsigned long long port = 0;
    hfsb_status        st = HFSB_OK;
    size_t             i;
    if (volumes->count) {
        wanted->volumes = (hfsb_job_volume *)hfsbi_array(
            wanted->alloc, volumes->count, sizeof *wanted->volumes);
        if (!wanted->volumes) return HFSB_NOMEM;
    }
    if (ports->count) {
        wanted->ports = (unsigned *)hfsbi_array(wanted->alloc, ports->count,
                                                sizeof *wanted->ports);
        if (!wanted->ports) return HFSB_NOMEM;
    }
    for (i = 0; i < volumes->count && st == HFSB_OK; i++)
        st = hfsb_job_volume_parse(volumes->list[i], &wanted->volumes[i], err);
    for (i = 0; i < ports->count && st == HFSB_OK; i++) {
        hfsb_str text = ports->list[i];
        if (!text.len || hfsbi_read_decimal(text, 65535, &port) != text.len)
            st = hfsbi_fail(err, HFSB_ARG, 0,
                            "\"ports\": expected numbers from 1 to 65535.");
        wanted->ports[i] = (unsigned)port;
    }
    wanted->spec.volumes = wanted->volumes;
    wanted->spec.volume_count = volumes->count;
    wanted->spec.ports = wanted->ports;
    wanted->spec.port_count = ports->count;
    return st;
}

static void hfsbi_wanted_fill_labels(hfsbi_wanted  *wanted,
                                     hfsb_hub_pair *pairs) {
    const hfsbi_words *labels = &wanted->words[HFSBI_WANTED_LABELS];
    size_t             i;
    for (i = 0; i + 1 < labels->count; i += 2) {
        pairs[i / 2].key = labels->list[i];
        pairs[i / 2].value = labels->list[i + 1];
    }
    wanted->spec.labels = pairs;
    wanted->spec.label_count = i / 2;
}

/* Fills all lists of pairs. By default the job gets the token, because its
   results must get to the Hub. */
static hfsb_status hfsbi_wanted_pairs(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsb_json_value *said =
        hfsb_json_get(wanted->call->arguments, "secrets");
    hfsb_hub_pair *secrets;
    wanted->pair_cap = HFSBI_WANTED_CALM +
                       wanted->words[HFSBI_WANTED_ENV].count / 2 +
                       wanted->words[HFSBI_WANTED_LABELS].count / 2 +
                       wanted->words[HFSBI_WANTED_SECRETS].count + 1;
    wanted->pairs = (hfsb_hub_pair *)hfsbi_array(
        wanted->alloc, wanted->pair_cap, sizeof *wanted->pairs);
    if (!wanted->pairs) return HFSB_NOMEM;
    memset(wanted->pairs, 0, wanted->pair_cap * sizeof *wanted->pairs);
    hfsbi_wanted_fill_env(wanted, wanted->pairs);
    hfsbi_wanted_fill_labels(wanted, wanted->pairs + wanted->spec.env_count);
    secrets =
        wanted->pairs + wanted->spec.env_count + wanted->spec.label_count;
    wanted->spec.secrets = secrets;
    if (hfsb_json_type_of(said) != HFSB_JSON_NULL)
        return hfsbi_wanted_fill_secrets(wanted, secrets, err);
    secrets->key = HFSB_LIT("HF_TOKEN");
    wanted->spec.secret_count = 1;
    return hfsbi_wanted_secret(wanted, secrets->key, &secrets->value, err);
}

/* ---- run: script or command ---- */

/* True when there is nothing to run: such a job would still cost money. */
static bool hfsbi_wanted_is_blank(hfsb_str text) {
    size_t i = 0;
    while (i < text.len && text.ptr[i] && strchr(" \t\r\n", text.ptr[i])) i++;
    return i == text.len;
}

static bool hfsbi_is_host_path(hfsb_str script) {
    static const char *const begin[] = {"/home/", "/Users/", "/fsx/"};
    size_t                   i;
    for (i = 0; i < sizeof begin / sizeof *begin; i++)
        if (hfsb_str_starts(script, hfsb_cstr(begin[i]))) return true;
    return false;
}

static hfsb_status hfsbi_wanted_script(hfsbi_wanted *wanted, hfsb_err *err) {
    hfsbi_hf_jobs_call *c = wanted->call;
    hfsb_str            script = c->args->script;
    hfsb_script_kind    kind;
    hfsb_status st = hfsb_session_script(c->session, script, &kind, c->cancel,
                                         &wanted->script, err);
    if (st != HFSB_OK) {
        if (hfsbi_is_host_path(script))
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

/* Exactly one of script and command must be given. */
static hfsb_status hfsbi_wanted_check(const hfsbi_wanted *wanted,
                                      bool *is_command, hfsb_err *err) {
    const hfsb_json_value *command =
        hfsb_json_get(wanted->call->arguments, "command");
    hfsb_json_type type = hfsb_json_type_of(command);
    bool           script = wanted->call->args->script.len > 0;
    *is_command =
        type != HFSB_JSON_NULL &&
        (type != HFSB_JSON_STRING ||
         !hfsbi_wanted_is_blank(hfsb_json_str(command, HFSB_LIT(""))));
    if (*is_command && script)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"script\" and \"command\" are both given: "
                          "expected one of them.");
    if (*is_command || script) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "\"script\" is missing: operation run needs it (Python "
                      "source, a file of the sandbox or a URL), or a "
                      "\"command\".");
}

static hfsb_status hfsbi_wanted_check_command(const hfsbi_wanted *wanted,
                                              hfsb_err           *err) {
    if (wanted->spec.with_count || wanted->spec.arg_count ||
        wanted->spec.python.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"dependencies\", \"script_args\" and \"python\" "
                          "go with script, not with command: write them into "
                          "the command line.");
    if (!wanted->spec.command_count)
        return hfsbi_fail(err, HFSB_ARG, 0, "\"command\" has no words.");
    return HFSB_OK;
}

/* Makes the spec of the job. */
static hfsb_status hfsbi_wanted_make(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsbi_hf_jobs_args *a = wanted->call->args;
    bool                      is_command;
    hfsb_status st = hfsbi_wanted_check(wanted, &is_command, err);
    wanted->spec.space = wanted->call->space;
    wanted->spec.image = a->image;
    wanted->spec.python = a->python;
    wanted->spec.timeout = a->timeout;
    wanted->spec.name = a->name;
    wanted->spec.schedule = a->schedule;
    wanted->spec.flavor = a->flavor.len ? a->flavor : HFSB_LIT("cpu-basic");
    if (st == HFSB_OK) st = hfsbi_wanted_lists(wanted, is_command);
    if (st == HFSB_OK) st = hfsbi_wanted_pairs(wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_mounts(wanted, err);
    if (st != HFSB_OK) return st;
    return is_command ? hfsbi_wanted_check_command(wanted, err)
                      : hfsbi_wanted_script(wanted, err);
}

/* ---- run: sending it ---- */

/* Hardware that the Hub had; it adds more, so any name is sent. */
static const char hfsbi_flavors[] =
    "cpu-basic cpu-upgrade cpu-performance cpu-xl t4-small t4-medium l4x1 "
    "l4x4 l40sx1 l40sx4 l40sx8 a10g-small a10g-large a10g-largex2 "
    "a10g-largex4 a100-large a100x4 a100x8 h200 h200x2 h200x4 h200x8";

/* A refusal may be due to hardware that does not exist. */
static void hfsbi_wanted_hint(const hfsbi_wanted *wanted, hfsb_status st,
                              hfsb_err *err) {
    bool refused = st == HFSB_ARG || st == HFSB_REFUSED || st == HFSB_REMOTE ||
                   st == HFSB_NOT_FOUND || st == HFSB_CONFLICT;
    if (!refused ||
        hfsbi_list_has(hfsb_cstr(hfsbi_flavors), ' ', wanted->spec.flavor))
        return;
    hfsbi_err_add(err, " Perhaps there is no hardware \"");
    hfsbi_err_quote(err, wanted->spec.flavor, 40);
    hfsbi_err_add(err, "\"; known are: %.*s.", (int)sizeof hfsbi_flavors - 1,
                  hfsbi_flavors);
}

static hfsb_status hfsbi_wanted_send(hfsbi_wanted *wanted, hfsb_err *err) {
    hfsbi_hf_jobs_call *c = wanted->call;
    hfsb_hub           *hub = c->session->opts.hub;
    hfsb_status         st;
    if (wanted->spec.command_count)
        st = hfsb_hub_job_run(hub, &wanted->spec, c->cancel, &c->job, err);
    else st = hfsb_hub_job_script(hub, &wanted->spec, c->cancel, &c->job, err);
    if (st != HFSB_OK) hfsbi_wanted_hint(wanted, st, err);
    return st;
}

/* Adds id, schedule and suspended of a scheduled job to the result. */
static hfsb_status hfsbi_hf_jobs_schedule_fields(hfsbi_hf_jobs_call *c,
                                                 hfsb_err           *err) {
    const hfsb_json_value *job = c->job.root;
    hfsb_str               id = hfsbi_hf_jobs_text(job, "id");
    hfsbi_build            fields;
    if (!id.len)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub accepted the request but returned no id of "
                          "a scheduled job: look with scheduled_ps.");
    hfsbi_build_init(&fields, &c->session->alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_str(&fields, "id", id);
    hfsbi_build_str(&fields, "schedule", hfsbi_hf_jobs_text(job, "schedule"));
    hfsbi_build_bool(&fields, "suspended",
                     hfsb_json_bool(hfsb_json_get(job, "suspend"), false));
    hfsbi_build_end(&fields);
    hfsb_json_free(&c->result->fields);
    return hfsbi_build_finish(&fields, &c->result->fields);
}

static hfsb_status hfsbi_wanted_report(hfsbi_wanted *wanted, hfsb_err *err) {
    hfsbi_hf_jobs_call *c = wanted->call;
    hfsb_str            id = hfsbi_hf_jobs_text(c->job.root, "id");
    hfsb_str            stage = hfsbi_hf_jobs_stage(c->job.root);
    hfsb_str            flavor = wanted->spec.flavor;
    hfsb_status         st;
    if (wanted->spec.schedule.len) {
        st = hfsbi_hf_jobs_schedule_fields(c, err);
        if (st != HFSB_OK) return st;
        hfsb_buf_printf(&c->text, "Scheduled job %.*s was made (", (int)id.len,
                        id.ptr);
        hfsbi_hf_jobs_put(c, wanted->spec.schedule, HFSBI_HF_JOBS_NAME);
        return hfsb_buf_printf(&c->text,
                               "). It costs money at every run until "
                               "scheduled_delete.");
    }
    st = hfsbi_hf_jobs_fields(c, err);
    if (st == HFSB_REMOTE)
        hfsbi_err_add(err, " It may run all the same: look with ps before "
                           "you run it again.");
    if (st != HFSB_OK) return st;
    hfsbi_session_log(c->session, "Started job %.*s on %.*s", (int)id.len,
                      id.ptr, (int)flavor.len, flavor.ptr);
    return hfsb_buf_printf(
        &c->text,
        "Job %.*s was started on %.*s (%.*s). Its logs and inspect take this "
        "job_id%s.",
        (int)id.len, id.ptr, (int)flavor.len, flavor.ptr, (int)stage.len,
        stage.ptr, c->space.len ? " and namespace" : "");
}

static hfsb_status hfsbi_hf_jobs_run(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsbi_wanted wanted;
    hfsb_status  st;
    memset(&wanted, 0, sizeof wanted);
    wanted.call = c;
    wanted.alloc = &c->session->alloc;
    wanted.err = err;
    wanted.script.alloc = wanted.doc.alloc = c->session->alloc;
    st = hfsbi_wanted_make(&wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_send(&wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_report(&wanted, err);
    hfsbi_wanted_free(&wanted);
    return st;
}

/* ---- ps ---- */

typedef struct hfsbi_hf_jobs_list {
    hfsbi_hf_jobs_call *call;
    size_t              count;
} hfsbi_hf_jobs_list;

static bool hfsbi_hf_jobs_each(void *user, const hfsb_json_value *job) {
    hfsbi_hf_jobs_list *l = (hfsbi_hf_jobs_list *)user;
    hfsb_buf           *text = &l->call->text;
    hfsb_str            id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str            stage = hfsbi_hf_jobs_stage(job);
    hfsb_str            flavor = hfsbi_hf_jobs_text(job, "flavor");
    hfsb_str            made = hfsbi_hf_jobs_text(job, "createdAt");
    if (l->count) hfsb_buf_append_byte(text, '\n');
    if (l->count++ == HFSBI_HF_JOBS_LISTED) {
        hfsb_buf_printf(text, "(and more)");
        return false;
    }
    hfsb_buf_printf(text, "%-24.*s  %-10.*s  %-12.*s  %.*s  ", (int)id.len,
                    id.ptr, (int)stage.len, stage.ptr, (int)flavor.len,
                    flavor.ptr, made.len < 19 ? (int)made.len : 19, made.ptr);
    hfsbi_hf_jobs_put_command(l->call, job, 60);
    return text->status == HFSB_OK;
}

static hfsb_status hfsbi_hf_jobs_ps(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_job_filter    filter = HFSB_INIT;
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_hub_pair      labels[HFSBI_HF_JOBS_LABELS];
    hfsb_json_iter     it = hfsb_json_begin(c->args->labels);
    hfsb_status        st;
    memset(labels, 0, sizeof labels);
    l.call = c;
    while (filter.label_count < HFSBI_HF_JOBS_LABELS && hfsb_json_next(&it)) {
        labels[filter.label_count].key = it.key;
        labels[filter.label_count++].value =
            hfsb_json_str(it.value, HFSB_LIT(""));
    }
    filter.labels = labels;
    filter.stages = &c->args->stage;
    filter.stage_count = c->args->stage.len ? 1 : 0;
    filter.space = c->space;
    st = hfsb_hub_jobs(c->session->opts.hub, &filter, hfsbi_hf_jobs_each, &l,
                       c->cancel, err);
    if (!l.count) hfsb_buf_printf(&c->text, "There are no jobs.");
    return st;
}

/* ---- scheduled jobs ---- */

static bool hfsbi_hf_jobs_each_scheduled(void                  *user,
                                         const hfsb_json_value *job) {
    hfsbi_hf_jobs_list    *l = (hfsbi_hf_jobs_list *)user;
    const hfsb_json_value *spec = hfsb_json_get(job, "jobSpec");
    hfsb_buf              *text = &l->call->text;
    hfsb_str               id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str               when = hfsbi_hf_jobs_text(job, "schedule");
    hfsb_str               flavor = hfsbi_hf_jobs_text(spec, "flavor");
    bool off = hfsb_json_bool(hfsb_json_get(job, "suspend"), false);
    if (l->count) hfsb_buf_append_byte(text, '\n');
    if (l->count++ == HFSBI_HF_JOBS_LISTED) {
        hfsb_buf_printf(text, "(and more)");
        return false;
    }
    hfsb_buf_printf(text, "%-24.*s  %-12.*s  %-9s  %-12.*s  ", (int)id.len,
                    id.ptr, (int)when.len, when.ptr,
                    off ? "suspended" : "active", (int)flavor.len, flavor.ptr);
    hfsbi_hf_jobs_put_command(l->call, spec, 60);
    return text->status == HFSB_OK;
}

static hfsb_status hfsbi_hf_jobs_scheduled_ps(hfsbi_hf_jobs_call *c,
                                              hfsb_err           *err) {
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_status        st;
    l.call = c;
    st = hfsb_hub_scheduled_jobs(c->session->opts.hub, c->space,
                                 hfsbi_hf_jobs_each_scheduled, &l, c->cancel,
                                 err);
    if (!l.count) hfsb_buf_printf(&c->text, "There are no scheduled jobs.");
    return st;
}

/* Does c->what, then shows the scheduled job, or the job that was run. */
static hfsb_status hfsbi_hf_jobs_scheduled(hfsbi_hf_jobs_call *c,
                                           hfsb_err           *err) {
    hfsb_hub          *hub = c->session->opts.hub;
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_status        st = hfsb_hub_scheduled(hub, c->what, c->space, c->id,
                                               c->cancel, &c->job, err);
    if (st != HFSB_OK) return st;
    if (c->what == HFSB_SCHEDULED_DELETE)
        return hfsb_buf_printf(&c->text, "Scheduled job %.*s was deleted.",
                               (int)c->id.len, c->id.ptr);
    l.call = c;
    if (c->what == HFSB_SCHEDULED_RUN) {
        (void)hfsbi_hf_jobs_each(&l, c->job.root);
        return hfsbi_hf_jobs_fields(c, err);
    }
    if (c->what != HFSB_SCHEDULED_GET) { /* as it is now */
        hfsb_json_free(&c->job);
        c->job.alloc = c->session->alloc;
        st = hfsb_hub_scheduled(hub, HFSB_SCHEDULED_GET, c->space, c->id,
                                c->cancel, &c->job, err);
        if (st != HFSB_OK) return st;
    }
    (void)hfsbi_hf_jobs_each_scheduled(&l, c->job.root);
    return hfsbi_hf_jobs_schedule_fields(c, err);
}

/* ---- inspect, cancel ---- */

/* Asks the Hub for the job. */
static hfsb_status hfsbi_hf_jobs_get(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    return hfsb_hub_job(c->session->opts.hub, c->space, c->id, c->cancel,
                        &c->job, err);
}

static void hfsbi_hf_jobs_put_line(hfsbi_hf_jobs_call *c, const char *name,
                                   hfsb_str text) {
    if (!text.len) return;
    hfsb_buf_printf(&c->text, "%s: ", name);
    hfsbi_hf_jobs_put(c, text, HFSBI_HF_JOBS_COMMAND);
    hfsb_buf_append_byte(&c->text, '\n');
}

/* Adds the names of the job's secrets or variables. */
static void hfsbi_hf_jobs_put_names(hfsbi_hf_jobs_call *c, const char *name,
                                    const hfsb_json_value *list) {
    hfsb_json_iter it = hfsb_json_begin(list);
    hfsb_err       line = HFSB_INIT;
    while (hfsb_json_next(&it)) {
        if (line.msg[0]) hfsbi_err_add(&line, ", ");
        hfsbi_err_quote(
            &line, it.key.len ? it.key : hfsb_json_str(it.value, HFSB_LIT("")),
            HFSBI_HF_JOBS_TEXT);
    }
    hfsbi_hf_jobs_put_line(c, name, hfsb_cstr(line.msg));
}

static hfsb_status hfsbi_hf_jobs_inspect(hfsbi_hf_jobs_call *c,
                                         hfsb_err           *err) {
    static const char *const keys[][2] = {
        {"createdAt", "created"},   {"startedAt", "started"},
        {"finishedAt", "finished"}, {"flavor", "hardware"},
        {"dockerImage", "image"},   {"spaceId", "image of the Space"}};
    const hfsb_json_value *job, *message;
    size_t                 i;
    hfsb_status            st = hfsbi_hf_jobs_get(c, err);
    if (st != HFSB_OK) return st;
    job = c->job.root;
    message = hfsb_json_get(hfsb_json_get(job, "status"), "message");
    hfsbi_hf_jobs_put_line(c, "job", hfsbi_hf_jobs_text(job, "id"));
    hfsbi_hf_jobs_put_line(c, "stage", hfsbi_hf_jobs_stage(job));
    hfsbi_hf_jobs_put_line(c, "message", hfsb_json_str(message, HFSB_LIT("")));
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        hfsbi_hf_jobs_put_line(c, keys[i][1],
                               hfsbi_hf_jobs_text(job, keys[i][0]));
    hfsbi_hf_jobs_put_names(c, "variables", hfsb_json_get(job, "environment"));
    hfsbi_hf_jobs_put_names(c, "secrets", hfsb_json_get(job, "secrets"));
    hfsb_buf_append(&c->text, HFSB_LIT("command: "));
    hfsbi_hf_jobs_put_command(c, job, HFSBI_HF_JOBS_COMMAND);
    return hfsbi_hf_jobs_fields(c, err);
}

/* The Hub refused to cancel a job. If the job has ended, that is why, whatever
   the Hub said. */
static hfsb_status hfsbi_hf_jobs_explain(hfsbi_hf_jobs_call *c, hfsb_status st,
                                         hfsb_err *err) {
    hfsb_str stage;
    if (st != HFSB_ARG && st != HFSB_CONFLICT && st != HFSB_DENIED &&
        st != HFSB_REMOTE)
        return st;
    if (hfsbi_hf_jobs_get(c, NULL) != HFSB_OK) return st;
    stage = hfsbi_hf_jobs_stage(c->job.root);
    if (!stage.len || !hfsbi_hf_jobs_is_over(stage)) return st;
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "Job %.*s has ended already (%.*s): nothing to cancel.",
                      (int)c->id.len, c->id.ptr, (int)stage.len, stage.ptr);
}

static hfsb_status hfsbi_hf_jobs_cancel(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_str    stage;
    hfsb_status st = hfsb_hub_job_cancel(c->session->opts.hub, c->space, c->id,
                                         c->cancel, &c->job, err);
    if (st != HFSB_OK) return hfsbi_hf_jobs_explain(c, st, err);
    stage = hfsbi_hf_jobs_stage(c->job.root);
    hfsb_buf_printf(&c->text, "Job %.*s was cancelled; it is %.*s.",
                    (int)c->id.len, c->id.ptr, (int)stage.len, stage.ptr);
    return hfsbi_hf_jobs_fields(c, err);
}

/* ---- logs ---- */

typedef struct hfsbi_hf_jobs_log {
    const hfsbi_hf_jobs_call *call;
    hfsb_text_filter         *filter;
    hfsb_text_window         *window;
    hfsb_buf                  clean, masked;
    long long                 until;
    hfsb_status               status;
} hfsbi_hf_jobs_log;

static bool hfsbi_hf_jobs_line(void *user, hfsb_str line, hfsb_str timestamp) {
    hfsbi_hf_jobs_log *l = (hfsbi_hf_jobs_log *)user;
    (void)timestamp;
    l->status = hfsb_text_filter_write(l->filter, line, &l->clean);
    if (l->status == HFSB_OK)
        l->status =
            hfsb_text_filter_write(l->filter, HFSB_LIT("\n"), &l->clean);
    if (l->status == HFSB_OK)
        l->status =
            hfsbi_hf_jobs_mask(l->call, hfsb_buf_str(&l->clean), &l->masked);
    if (l->status == HFSB_OK)
        l->status =
            hfsb_text_window_write(l->window, hfsb_buf_str(&l->masked));
    hfsb_buf_truncate(&l->clean, 0);
    hfsb_buf_truncate(&l->masked, 0);
    return l->status == HFSB_OK && hfsb_clock_ms() < l->until;
}

/* Adds the log as it is now. */
static hfsb_status hfsbi_hf_jobs_read_log(hfsbi_hf_jobs_call *c,
                                          hfsb_err           *err) {
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_log_opts     opts = HFSB_INIT;
    hfsbi_hf_jobs_log l = HFSB_INIT;
    hfsb_status       st = HFSB_NOMEM;
    limit.chars = HFSBI_HF_JOBS_CHARS;
    limit.head = HFSBI_HF_JOBS_HEAD;
    opts.tail = HFSBI_HF_JOBS_LINES;
    opts.idle_ms = HFSBI_HF_JOBS_IDLE_MS;
    opts.cancel = c->cancel;
    l.call = c;
    l.clean.alloc = l.masked.alloc = c->session->alloc;
    l.until = hfsb_clock_ms() + HFSBI_HF_JOBS_TOTAL_MS;
    l.filter = hfsb_text_filter_open(&c->session->alloc);
    l.window = hfsb_text_window_open(&limit, &c->session->alloc);
    if (l.filter && l.window)
        st = hfsb_hub_job_logs(c->session->opts.hub, c->space, c->id, &opts,
                               hfsbi_hf_jobs_line, &l, err);
    if (st == HFSB_OK) st = l.status;
    if (st == HFSB_OK)
        st = hfsb_text_window_show(l.window, HFSB_LIT(""), &c->text);
    hfsb_text_filter_close(l.filter);
    hfsb_text_window_close(l.window);
    hfsb_buf_free(&l.clean);
    hfsb_buf_free(&l.masked);
    return st;
}

/* The log, the job's stage, and whether there will be more. */
static hfsb_status hfsbi_hf_jobs_logs(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_str    stage;
    hfsb_status st = hfsbi_hf_jobs_read_log(c, err);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_get(c, err);
    if (st != HFSB_OK) return st;
    stage = hfsbi_hf_jobs_stage(c->job.root);
    if (!c->text.len) hfsb_buf_printf(&c->text, "(no output)\n");
    hfsb_buf_printf(&c->text, "(job %.*s is %.*s%s)", (int)c->id.len,
                    c->id.ptr, (int)stage.len, stage.ptr,
                    hfsbi_hf_jobs_is_over(stage)
                        ? ""
                        : ": this is its log so far; look again in a while");
    return hfsbi_hf_jobs_fields(c, err);
}

/* ---- the tool ---- */

#define HFSBI_HF_JOBS_STR(name, field, words) \
    HFSBI_PARAM(name, HFSBI_ARG_STR, 0, hfsbi_hf_jobs_args, field, words)
#define HFSBI_HF_JOBS_LIST(name, field, words) \
    HFSBI_PARAM(name, HFSBI_ARG_LIST, 0, hfsbi_hf_jobs_args, field, words)

static const hfsbi_param hfsbi_hf_jobs_params[] = {
    HFSBI_PARAM_CHOICE("operation", HFSBI_REQUIRED, hfsbi_hf_jobs_args,
                       operation,
                       "run ps logs inspect cancel scheduled_ps "
                       "scheduled_inspect scheduled_delete scheduled_suspend "
                       "scheduled_resume scheduled_run"),
    HFSBI_HF_JOBS_STR("script", script,
                      "Python for uv run: source text; or a file of the "
                      "sandbox, which is sent (/app/train.py, ./train.py or "
                      "bare train.py); or a URL. Never a path of the host "
                      "(/home, /Users, /fsx)"),
    HFSBI_PARAM("command", HFSBI_ARG_STR, HFSBI_BY_TOOL, hfsbi_hf_jobs_args,
                script, "Shell command, in place of script"),
    HFSBI_HF_JOBS_LIST("dependencies", with, "Packages for the script"),
    HFSBI_HF_JOBS_LIST("script_args", args, "Its arguments"),
    HFSBI_HF_JOBS_STR("python", python, "Version, such as 3.12"),
    HFSBI_HF_JOBS_STR("image", image,
                      "Docker image or page of a Space; default: uv for "
                      "script, python:3.12 for command"),
    HFSBI_HF_JOBS_STR("hardware_flavor", flavor,
                      "cpu-basic (default), cpu-upgrade, t4-small, t4-medium, "
                      "l4x1, a10g-small, a10g-large, a100-large, h200 or "
                      "another that the Hub has"),
    HFSBI_PARAM("timeout", HFSBI_ARG_STR, HFSBI_OR_NUMBER, hfsbi_hf_jobs_args,
                timeout,
                "Such as 90s, 30m (default) or 2h: set it well above what you "
                "expect"),
    HFSBI_PARAM("env", HFSBI_ARG_OBJECT, 0, hfsbi_hf_jobs_args, env,
                "Variables to set, no secrets"),
    HFSBI_PARAM("secrets", HFSBI_ARG_LIST, HFSBI_BY_TOOL, hfsbi_hf_jobs_args,
                with,
                "Names of secrets it gets from the session; default "
                "HF_TOKEN"),
    HFSBI_HF_JOBS_STR("schedule", schedule,
                      "For run, to repeat it: @daily or cron; its id is the "
                      "job_id of scheduled_..."),
    /* for programs: each one more is read by the model in every call */
    HFSBI_PARAM("name", HFSBI_ARG_STR, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                name, NULL),
    HFSBI_PARAM("labels", HFSBI_ARG_OBJECT, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                labels, NULL),
    HFSBI_PARAM("volumes", HFSBI_ARG_LIST, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                volumes, NULL),
    HFSBI_PARAM("ports", HFSBI_ARG_LIST, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                ports, NULL),
    HFSBI_PARAM("stage", HFSBI_ARG_STR, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                stage, NULL),
    HFSBI_HF_JOBS_STR("job_id", id, NULL),
    HFSBI_HF_JOBS_STR("namespace", space,
                      "Organisation to run it for; default: you"),
    HFSBI_PARAM_END};

HFSBI_FN const hfsbi_tool *hfsbi_hf_jobs_tool(void) {
    static const hfsbi_tool row = {
        "hf_jobs",
        "Run jobs on Hugging Face",
        "Jobs on machines of Hugging Face: run starts one from script or "
        "command, ps lists them, logs shows what one printed so far, inspect "
        "and cancel take its job_id. A job costs money by the minute, sees no "
        "file of the sandbox and loses its own at its end: let it push what "
        "it makes to the Hub. Before a job on GPU, or one that loads a model "
        "or uses CUDA, bf16, fp16, quantization, flash attention or "
        "torch.compile: smoke-test it on a GPU sandbox (sandbox_create, "
        "t4-small at least) with the same imports, loading path and entry "
        "point on tiny data, or say why you skip that. Then run one job "
        "first, more when its logs are good.",
        NULL,
        HFSBI_TOOL_RUNS,
        0,
        hfsbi_hf_jobs_params,
        NULL,
        NULL};
    return &row;
}

typedef struct hfsbi_hf_jobs_operation {
    const char *name;
    hfsb_status (*fn)(hfsbi_hf_jobs_call *c, hfsb_err *err);
    bool           of_job; /* it needs a job_id */
    hfsb_scheduled what;   /* of a scheduled job */
} hfsbi_hf_jobs_operation;

static const hfsbi_hf_jobs_operation hfsbi_hf_jobs_operations[] = {
    {"run", hfsbi_hf_jobs_run, false, HFSB_SCHEDULED_GET},
    {"ps", hfsbi_hf_jobs_ps, false, HFSB_SCHEDULED_GET},
    {"logs", hfsbi_hf_jobs_logs, true, HFSB_SCHEDULED_GET},
    {"inspect", hfsbi_hf_jobs_inspect, true, HFSB_SCHEDULED_GET},
    {"cancel", hfsbi_hf_jobs_cancel, true, HFSB_SCHEDULED_GET},
    {"scheduled_ps", hfsbi_hf_jobs_scheduled_ps, false, HFSB_SCHEDULED_GET},
    {"scheduled_inspect", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_GET},
    {"scheduled_delete", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_DELETE},
    {"scheduled_suspend", hfsbi_hf_jobs_scheduled, true,
     HFSB_SCHEDULED_SUSPEND},
    {"scheduled_resume", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_RESUME},
    {"scheduled_run", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_RUN}};

static const hfsbi_hf_jobs_operation *hfsbi_hf_jobs_find(hfsb_str  name,
                                                         hfsb_err *err) {
    const hfsbi_hf_jobs_operation *op = hfsbi_hf_jobs_operations;
    const hfsbi_hf_jobs_operation *end =
        op +
        sizeof hfsbi_hf_jobs_operations / sizeof *hfsbi_hf_jobs_operations;
    while (op < end && !hfsb_str_equal(name, hfsb_cstr(op->name))) op++;
    if (op < end) return op;
    hfsbi_fail(err, HFSB_ARG, 0,
               "\"operation\": expected run, ps, logs, inspect or cancel, "
               "or scheduled_ps, _inspect, _delete, _suspend, _resume or "
               "_run, found \"");
    hfsbi_err_quote(err, name, HFSBI_HF_JOBS_NAME);
    hfsbi_err_add(err, "\"");
    return NULL;
}

/* Splits a job_id that was given as {namespace}/{id}. */
static void hfsbi_hf_jobs_split(hfsbi_hf_jobs_call *c) {
    size_t slash = hfsb_str_find_byte(c->id, '/');
    if (slash == HFSB_NPOS) return;
    if (!c->space.len) c->space = hfsb_str_slice(c->id, 0, slash);
    c->id = hfsb_str_slice(c->id, slash + 1, c->id.len);
}

HFSBI_FN hfsb_status hfsbi_session_jobs(const hfsbi_own_call *call,
                                        const void           *args,
                                        hfsb_tool_result     *result,
                                        hfsb_err             *err) {
    const hfsbi_hf_jobs_operation *op;
    hfsbi_hf_jobs_call             c;
    hfsb_status                    st;
    memset(&c, 0, sizeof c);
    c.session = call->session;
    c.arguments = call->arguments;
    c.args = (const hfsbi_hf_jobs_args *)args;
    c.cancel = call->cancel;
    c.result = result;
    c.id = c.args->id;
    c.space = c.args->space;
    op = hfsbi_hf_jobs_find(c.args->operation, err);
    if (!op) return HFSB_ARG;
    c.what = op->what;
    hfsbi_hf_jobs_split(&c);
    if (op->of_job && !c.id.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"job_id\" is missing: operation %s needs it; %s "
                          "lists them.",
                          op->name,
                          op->fn == hfsbi_hf_jobs_scheduled ? "scheduled_ps"
                                                            : "ps");
    c.job.alloc = c.text.alloc = c.session->alloc;
    st = op->fn(&c, err);
    if (st == HFSB_OK) st = c.text.status;
    if (st == HFSB_OK) {
        result->success = true;
        st = hfsbi_hf_jobs_mask(&c, hfsb_buf_str(&c.text), &result->output);
    }
    hfsb_json_free(&c.job);
    hfsb_buf_free(&c.text);
    return st;
}
