/* hf_jobs_run.c - hf_jobs: the job that its operation run starts.

   A hfsbi_wanted is made from the arguments, and owns all that the job's spec
   points to: one document with the lists as texts, and one array of views of
   them. A script may be source text, a URL, or a file of the sandbox, whose
   content is sent. The model names secrets; the session, which knows their
   values, fills them in. */
#include "hub_private.h"

/* ---- lists of texts ---- */

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

/* Adds the secrets: a list of names; an object with values is accepted too. */
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

/* ---- secrets and variables ---- */

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
    HFSBI_WANTED_CALM = sizeof hfsbi_wanted_calm / sizeof *hfsbi_wanted_calm,
    HFSBI_WANTED_TRACKIO = 2 /* its Space and its project */
};

static bool hfsbi_wanted_sets(const hfsbi_words *env, hfsb_str name) {
    size_t i;
    for (i = 0; i < env->count; i += 2)
        if (hfsb_str_equal(env->list[i], name)) return true;
    return false;
}

/* Arguments for trackio replace variables of these names. */
static void hfsbi_wanted_fill_env(hfsbi_wanted *wanted, hfsb_hub_pair *pairs) {
    const hfsbi_hf_jobs_args *a = wanted->call->args;
    const hfsbi_words        *env = &wanted->words[HFSBI_WANTED_ENV];
    const hfsb_str space = HFSB_LIT("TRACKIO_SPACE_ID"), given = a->trackio;
    const hfsb_str project = HFSB_LIT("TRACKIO_PROJECT");
    size_t         i, n = 0;
    for (i = 0; i < HFSBI_WANTED_CALM; i++) {
        hfsb_str name = hfsb_cstr(hfsbi_wanted_calm[i]);
        if (hfsbi_wanted_sets(env, name)) continue;
        pairs[n].key = name;
        pairs[n++].value = HFSB_LIT("1");
    }
    for (i = 0; i + 1 < env->count; i += 2) {
        hfsb_str key = env->list[i];
        if ((given.len && hfsb_str_equal(key, space)) ||
            (a->project.len && hfsb_str_equal(key, project)))
            continue;
        pairs[n].key = key;
        pairs[n++].value = env->list[i + 1];
    }
    if (given.len) {
        pairs[n].key = space;
        pairs[n++].value = given;
    }
    if (a->project.len) {
        pairs[n].key = project;
        pairs[n++].value = a->project;
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
   results must reach the Hub. */
static hfsb_status hfsbi_wanted_pairs(hfsbi_wanted *wanted, hfsb_err *err) {
    const hfsb_json_value *said =
        hfsb_json_get(wanted->call->arguments, "secrets");
    hfsb_hub_pair *secrets;
    wanted->pair_cap = HFSBI_WANTED_CALM + HFSBI_WANTED_TRACKIO +
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

/* ---- script or command ---- */

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
    wanted->spec.flavor = wanted->call->flavor;
    if (st == HFSB_OK) st = hfsbi_wanted_lists(wanted, is_command);
    if (st == HFSB_OK) st = hfsbi_wanted_pairs(wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_mounts(wanted, err);
    if (st != HFSB_OK) return st;
    return is_command ? hfsbi_wanted_check_command(wanted, err)
                      : hfsbi_wanted_script(wanted, err);
}

/* ---- sending it ---- */

/* Hardware that the Hub had when this was written; it adds more, so any name
   is sent. */
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

HFSBI_FN hfsb_status hfsbi_hf_jobs_start(hfsbi_hf_jobs_call *c,
                                         hfsb_err           *err) {
    hfsbi_wanted wanted;
    hfsb_status  st;
    memset(&wanted, 0, sizeof wanted);
    wanted.call = c;
    wanted.alloc = &c->session->alloc;
    wanted.err = err;
    wanted.script.alloc = wanted.doc.alloc = c->session->alloc;
    st = hfsbi_wanted_make(&wanted, err);
    if (st == HFSB_OK) st = hfsbi_wanted_send(&wanted, err);
    hfsbi_wanted_free(&wanted);
    return st;
}
