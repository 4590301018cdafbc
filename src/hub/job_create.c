/* job_create.c - creates a sandbox that is a job.

   A job runs any image that has /bin/sh. Its command is a boot script that
   decodes a static hfsb-server, checks it, and becomes it. The server is
   committed once to the private model OWNER/hfsb-server, one file for each
   version and sha256, as base64 text, since the Hub wants binary files in LFS:

       commit (once) --> run the job --> its URL --> its server answers
                             |  volume: the model, read-only
                             |  secret: SANDBOX_API_TOKEN
                             |  labels: hfsb-sandbox=1, hf-sandbox-nonce=N

   Any failure after the job was sent cancels it. When the reply to that
   request is lost, the job is found by its nonce; a job that cannot be
   cancelled is named in the message. */
#include "hub_private.h"

enum {
    HFSBI_HUBJOB_NONCE = 32, /* hexadecimal digits */
    HFSBI_HUBJOB_LINE = 76,  /* characters of base64, for openssl */
    HFSBI_HUBJOB_LOOKS = 4,  /* for a job whose reply was lost */
    HFSBI_HUBJOB_TRIES = 8   /* of a commit to a model that is not visible */
};

#define HFSBI_HUBJOB_REPO  "hfsb-server"
#define HFSBI_HUBJOB_MOUNT "/.hfsb-server"

/* ---- the boot script ---- */

/* POSIX sh, for any image. Its variables are HFSB_SERVER_FILE, _SHA256, _MOUNT
   and _URL, HFSB_DOWNLOAD_TOKEN, HFSB_API, SBX_IDLE_TIMEOUT; HFSB_HOST,
   SBX_PORT and HFSB_WORK_DIR are for tests and for images with other
   conventions. Without base64, openssl, python3 and perl the shell decodes by
   itself, which takes some seconds. */
static const char hfsbi_hubjob_boot[] =
    "set -u\n"
    "die() { echo \"hfsb boot: $*\" >&2; exit 1; }\n"
    "have() { command -v \"$1\" >/dev/null 2>&1; }\n"
    "decode() {\n"
    "a=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\n"
    "while IFS= read -r l; do o=\n"
    "while [ -n \"$l\" ]; do\n"
    "r=${l#????}; q=${l%\"$r\"}; l=$r; n=0; k=0\n"
    "while [ -n \"$q\" ]; do\n"
    "r=${q#?}; c=${q%\"$r\"}; q=$r; v=${a%%\"$c\"*}\n"
    "if [ \"$c\" = = ]; then v=; k=$((k+1)); fi\n"
    "n=$((n*64+${#v})); done\n"
    "o=$o\\\\$((n>>22&3))$((n>>19&7))$((n>>16&7))\n"
    "[ $k -gt 1 ] || o=$o\\\\$((n>>14&3))$((n>>11&7))$((n>>8&7))\n"
    "[ $k -gt 0 ] || o=$o\\\\$((n>>6&3))$((n>>3&7))$((n&7))\n"
    "done; printf \"$o\" || return 1; done; }\n"
    "for d in \"${TMPDIR:-/tmp}\" /tmp /var/tmp /dev/shm \"${HOME:-/}\" .\n"
    "do p=$d/.hfsb-server.$$; (: > \"$p\") 2>/dev/null && break; done\n"
    "b=${HFSB_SERVER_MOUNT:-" HFSBI_HUBJOB_MOUNT "}/$HFSB_SERVER_FILE\n"
    "if [ ! -r \"$b\" ]; then\n"
    "[ -n \"${HFSB_SERVER_URL:-}\" ] || die \"$b is not mounted: create the "
    "sandbox with the option download\"\n"
    "b=$p.b64; h=\"Authorization: Bearer $HFSB_DOWNLOAD_TOKEN\"\n"
    "if have curl; then curl -fsSL -H \"$h\" -o \"$b\" \"$HFSB_SERVER_URL\"\n"
    "elif have wget; then wget -q --header \"$h\" -O \"$b\" "
    "\"$HFSB_SERVER_URL\"\n"
    "else die 'neither the volume nor curl or wget is there'\n"
    "fi || die \"no download of $HFSB_SERVER_URL\"\n"
    "fi\n"
    "if have base64; then base64 -d < \"$b\" > \"$p\"\n"
    "elif have openssl; then openssl base64 -d -in \"$b\" -out \"$p\"\n"
    "elif have python3; then python3 -c 'import base64,sys\n"
    "base64.decode(sys.stdin.buffer,sys.stdout.buffer)' < \"$b\" > \"$p\"\n"
    "elif have perl; then perl -MMIME::Base64 -ne 'print decode_base64($_)' "
    "< \"$b\" > \"$p\"\n"
    "else decode < \"$b\" > \"$p\"\n"
    "fi || die \"$b could not be decoded into $p\"\n"
    "if have sha256sum; then s=$(sha256sum < \"$p\"); s=${s%% *}\n"
    "elif have openssl; then s=$(openssl dgst -sha256 < \"$p\"); "
    "s=${s##* }\n"
    "else s=$HFSB_SERVER_SHA256; echo 'hfsb boot: no sha256sum or openssl, "
    "the server is not checked' >&2\n"
    "fi\n"
    "[ \"$s\" = \"$HFSB_SERVER_SHA256\" ] || die \"$b is not the server: "
    "sha256 $s, expected $HFSB_SERVER_SHA256\"\n"
    "chmod 700 \"$p\" || die \"no chmod for $p\"\n"
    "w=${HFSB_WORK_DIR:-/app}\n"
    "{ mkdir -p \"$w\" && cd \"$w\" && [ -w . ]; } 2>/dev/null || "
    "cd \"${HOME:-/tmp}\" 2>/dev/null || cd /\n"
    "set -- --host \"${HFSB_HOST:-0.0.0.0}\" --port \"${SBX_PORT:-49983}\" "
    "--work-dir \"$PWD\" ${HFSB_API:+--api} ${HFSB_API:+\"$HFSB_API\"} "
    "${SBX_IDLE_TIMEOUT:+--max-idle} "
    "${SBX_IDLE_TIMEOUT:+\"$SBX_IDLE_TIMEOUT\"}\n"
    "[ \"${HFSB_API:-}\" = codex ] || set -- \"$@\" --api codex\n"
    "unset HFSB_SERVER_FILE HFSB_SERVER_SHA256 HFSB_SERVER_MOUNT "
    "HFSB_SERVER_URL HFSB_DOWNLOAD_TOKEN HFSB_HOST HFSB_WORK_DIR HFSB_API "
    "SBX_PORT SBX_IDLE_TIMEOUT\n"
    "exec \"$p\" \"$@\"\n";

/* ---- one creation ---- */

typedef struct hfsbi_hubjob_create {
    const hfsb_sandbox_spec *spec;
    hfsb_sandbox_opts        opts; /* with the token */
    hfsb_hub                *hub;
    hfsb_buf                 owner, token, repo, file, url;
    char                     nonce[HFSBI_HUBJOB_NONCE + 1]; /* "": none */
    char                     sha[HFSB_SHA256_HEX];
    hfsb_sandbox            *box; /* NULL until the job has an id */
    bool                     left;
    hfsb_err                 err;
} hfsbi_hubjob_create;

static hfsb_status hfsbi_hubjob_create_check(hfsbi_hubjob_create *c) {
    const hfsb_sandbox_spec *spec = c->spec;
    if (!c->opts.hub)
        return hfsbi_fail(&c->err, HFSB_ARG, 0,
                          "a sandbox that is a job needs the option hub");
    c->hub = c->opts.hub;
    if (!hfsb_hub_has_token(c->hub))
        return hfsbi_fail(&c->err, HFSB_AUTH, 0,
                          "running a job needs a token of the Hugging Face "
                          "Hub: set HF_TOKEN, or log in with \"hf auth "
                          "login\"");
    if (!spec->server.len)
        return hfsbi_fail(&c->err, HFSB_ARG, 0,
                          "a sandbox that is a job needs the bytes of a "
                          "static hfsb-server: build it with `make static`");
    if (spec->idle_timeout.len && hfsbi_hub_seconds(spec->idle_timeout) <= 0)
        return hfsbi_fail(&c->err, HFSB_ARG, 0,
                          "the idle timeout of a job must be seconds, or a "
                          "number followed by s, m, h or d (\"10m\")");
    return hfsbi_create_check_secrets(spec, &c->err);
}

/* Makes the nonce and the token; owner, repository, file and URL. */
static hfsb_status hfsbi_hubjob_create_names(hfsbi_hubjob_create *c) {
    hfsb_str    endpoint = hfsb_hub_endpoint(c->hub);
    hfsb_status st;
    if (!c->opts.api_token.len) {
        if (!hfsbi_random_hex(c->nonce, HFSBI_HUBJOB_NONCE))
            return hfsbi_fail(&c->err, HFSB_BUSY, 0,
                              "the system has no random bytes for a token: "
                              "give one as the option api_token");
        st = hfsbi_hubjob_token(c->hub, hfsb_cstr(c->nonce), &c->token);
        if (st != HFSB_OK) return hfsbi_fail_status(&c->err, st, "Token");
        c->opts.api_token = hfsb_buf_str(&c->token);
    }
    if (c->spec->owner.len) st = hfsb_buf_append(&c->owner, c->spec->owner);
    else st = hfsb_hub_user(c->hub, c->opts.cancel, &c->owner, &c->err);
    if (st == HFSB_NOMEM) (void)hfsbi_fail_status(&c->err, st, "Owner");
    if (st != HFSB_OK) return st;
    hfsb_sha256_hex(c->spec->server, c->sha);
    hfsb_buf_printf(&c->repo, "%s/" HFSBI_HUBJOB_REPO, c->owner.ptr);
    hfsb_buf_printf(&c->file, "hfsb-server-" HFSB_VERSION "-%s.b64", c->sha);
    if (c->repo.status == HFSB_OK && c->file.status == HFSB_OK)
        st = hfsb_buf_printf(&c->url, "%.*s/%s/resolve/main/%s",
                             (int)endpoint.len, endpoint.ptr, c->repo.ptr,
                             c->file.ptr);
    else st = HFSB_NOMEM;
    if (st != HFSB_OK) return hfsbi_fail_status(&c->err, st, "Address");
    return hfsb_space_check(hfsb_buf_str(&c->repo), &c->err);
}

/* Writes one line to the log, which must not need a handle. */
static void hfsbi_hubjob_create_log(const hfsbi_hubjob_create *c,
                                    const char *what, const char *name) {
    hfsb_buf line = HFSB_INIT;
    if (!c->opts.log) return;
    line.alloc = c->opts.alloc;
    if (hfsb_buf_printf(&line, "%s%s", what, name) == HFSB_OK)
        c->opts.log(c->opts.user, hfsb_buf_str(&line));
    hfsb_buf_free(&line);
}

/* ---- the server's file ---- */

/* Appends bytes in base64, in lines. */
static hfsb_status hfsbi_hubjob_encode(hfsb_str bytes, hfsb_buf *out) {
    const size_t step = HFSBI_HUBJOB_LINE / 4 * 3;
    hfsb_status  st =
        hfsb_buf_reserve(out, bytes.len / step * (HFSBI_HUBJOB_LINE + 1) +
                                  HFSBI_HUBJOB_LINE + 2);
    while (st == HFSB_OK && bytes.len) {
        st = hfsb_base64_encode(hfsb_str_slice(bytes, 0, step), out);
        if (st == HFSB_OK) st = hfsb_buf_append_byte(out, '\n');
        bytes = hfsb_str_slice(bytes, step, bytes.len);
    }
    return st;
}

/* Creates the private model; HFSB_OK also when it exists. */
static hfsb_status hfsbi_hubjob_create_model(hfsbi_hubjob_create *c) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_json_writer *w;
    hfsb_status       st;
    hfsbi_hubjob_create_log(c, "Creating the private model ", c->repo.ptr);
    st =
        hfsbi_hub_begin(c->hub, &request, HFSBI_HUB_MODEL_CREATE,
                        hfsb_buf_str(&c->repo), none, c->opts.cancel, &c->err);
    if (st == HFSB_OK) {
        w = hfsbi_hub_object(&request);
        hfsbi_hub_put(w, "name", HFSB_LIT(HFSBI_HUBJOB_REPO));
        hfsbi_hub_put(w, "organization", hfsb_buf_str(&c->owner));
        hfsbi_hub_put(w, "type", HFSB_LIT("model"));
        hfsbi_hub_put(w, "visibility", HFSB_LIT("private"));
        hfsb_json_put_end(w);
        st = hfsbi_hub_send(&request, &c->err);
    }
    hfsbi_hub_end(&request);
    return st == HFSB_CONFLICT ? hfsbi_ok(&c->err) : st;
}

/* Commits the server unless the model has it. A model that was just created
   may not be visible yet. */
static hfsb_status hfsbi_hubjob_create_upload(hfsbi_hubjob_create *c) {
    hfsb_commit      commit = HFSB_INIT;
    hfsb_commit_file file = HFSB_INIT;
    hfsb_commit_done done;
    hfsb_buf         text = HFSB_INIT;
    hfsbi_retry      retry = HFSB_INIT;
    hfsb_status      st;
    text.alloc = c->opts.alloc;
    st = hfsbi_hubjob_encode(c->spec->server, &text);
    file.path = c->file.ptr;
    file.content = hfsb_buf_str(&text);
    commit.files = &file;
    commit.file_count = 1;
    commit.summary = HFSB_LIT("hfsb-server " HFSB_VERSION);
    commit.model = true;
    retry.tries = HFSBI_HUBJOB_TRIES;
    retry.delay_ms =
        c->opts.times.poll_ms > 0 ? (c->opts.times.poll_ms + 4) / 5 : 1000;
    retry.max_delay_ms = 5 * retry.delay_ms;
    retry.cancel = c->opts.cancel;
    if (st != HFSB_OK) (void)hfsbi_fail_status(&c->err, st, "Server");
    while (st == HFSB_OK) {
        st = hfsb_hub_commit(c->hub, hfsb_buf_str(&c->repo), &commit,
                             c->opts.cancel, &done, &c->err);
        if (st == HFSB_OK && !done.unchanged)
            hfsbi_hubjob_create_log(c, "Uploaded hfsb-server to ",
                                    c->repo.ptr);
        if (st != HFSB_NOT_FOUND) break;
        if (!retry.waits) st = hfsbi_hubjob_create_model(c);
        else st = HFSB_OK;
        if (st == HFSB_OK) {
            hfsb_status wait = hfsbi_retry_again(&retry);
            if (wait != HFSB_OK)
                st = wait == HFSB_CANCELLED ? wait : HFSB_NOT_FOUND;
        }
    }
    hfsb_buf_free(&text);
    return st;
}

/* ---- the job ---- */

/* All that the job's spec points to. */
typedef struct hfsbi_hubjob_parts {
    hfsb_str         command[3];
    hfsb_hub_pair    env[6], labels[4];
    hfsb_hub_pair   *secrets; /* the user's, and three more */
    hfsb_job_volume *volumes; /* the user's, and one more */
    unsigned         port;
    char             number[24], name[100];
    hfsb_job_spec    spec;
} hfsbi_hubjob_parts;

static void hfsbi_hubjob_pair(hfsb_hub_pair *list, size_t *count,
                              const char *key, hfsb_str value) {
    memset(&list[*count], 0, sizeof *list);
    list[*count].key = hfsb_cstr(key);
    list[(*count)++].value = value;
}

static void hfsbi_hubjob_fill_env(const hfsbi_hubjob_create *c,
                                  hfsbi_hubjob_parts        *p) {
    hfsb_job_spec *job = &p->spec;
    job->env = p->env;
    hfsbi_hubjob_pair(p->env, &job->env_count, "HFSB_SERVER_FILE",
                      hfsb_buf_str(&c->file));
    hfsbi_hubjob_pair(p->env, &job->env_count, "HFSB_SERVER_SHA256",
                      hfsb_cstr(c->sha));
    hfsbi_hubjob_pair(p->env, &job->env_count, "SBX_PORT", HFSB_LIT("49983"));
    if (c->spec->idle_timeout.len) {
        (void)snprintf(p->number, sizeof p->number, "%lld",
                       hfsbi_hub_seconds(c->spec->idle_timeout));
        hfsbi_hubjob_pair(p->env, &job->env_count, "SBX_IDLE_TIMEOUT",
                          hfsb_cstr(p->number));
    }
    if (c->spec->api.len)
        hfsbi_hubjob_pair(p->env, &job->env_count, "HFSB_API", c->spec->api);
    if (c->spec->download)
        hfsbi_hubjob_pair(p->env, &job->env_count, "HFSB_SERVER_URL",
                          hfsb_buf_str(&c->url));
}

static void hfsbi_hubjob_fill_labels(const hfsbi_hubjob_create *c,
                                     hfsbi_hubjob_parts        *p) {
    hfsb_job_spec *job = &p->spec;
    hfsb_str name = c->spec->name.len ? c->spec->name : HFSB_LIT("sandbox");
    char     suffix[HFSBI_SUFFIX + 1];
    hfsbi_random_hex(suffix, HFSBI_SUFFIX);
    (void)snprintf(p->name, sizeof p->name, "%.*s-%s",
                   (int)(name.len < 80 ? name.len : 80), name.ptr, suffix);
    job->name = hfsb_cstr(p->name);
    job->labels = p->labels;
    hfsbi_hubjob_pair(p->labels, &job->label_count, HFSBI_HUBJOB_LABEL,
                      HFSB_LIT("1"));
    if (c->nonce[0])
        hfsbi_hubjob_pair(p->labels, &job->label_count,
                          HFSBI_HUBJOB_NONCE_LABEL, hfsb_cstr(c->nonce));
    if (!hfsb_str_equal(c->spec->api, HFSB_LIT("hf"))) return;
    hfsbi_hubjob_pair(p->labels, &job->label_count, "hf-sandbox",
                      HFSB_LIT("1"));
    hfsbi_hubjob_pair(p->labels, &job->label_count, "hf-sandbox-mode",
                      HFSB_LIT("dedicated"));
}

/* The user's secrets and volumes, and ours. */
static void hfsbi_hubjob_fill_lists(const hfsbi_hubjob_create *c,
                                    hfsbi_hubjob_parts        *p) {
    const hfsb_sandbox_spec *spec = c->spec;
    hfsb_job_spec           *job = &p->spec;
    hfsb_job_volume         *volume = &p->volumes[spec->volume_count];
    if (spec->secret_count)
        memcpy(p->secrets, spec->secrets,
               spec->secret_count * sizeof *p->secrets);
    if (spec->volume_count)
        memcpy(p->volumes, spec->volumes,
               spec->volume_count * sizeof *p->volumes);
    job->secrets = p->secrets;
    job->secret_count = spec->secret_count;
    hfsbi_hubjob_pair(p->secrets, &job->secret_count, "SANDBOX_API_TOKEN",
                      c->opts.api_token);
    if (hfsb_str_equal(spec->api, HFSB_LIT("hf")))
        hfsbi_hubjob_pair(p->secrets, &job->secret_count, "SBX_TOKEN",
                          c->opts.api_token);
    if (spec->download)
        hfsbi_hubjob_pair(p->secrets, &job->secret_count,
                          "HFSB_DOWNLOAD_TOKEN",
                          hfsb_str_slice(hfsb_buf_str(&c->hub->authorization),
                                         7, HFSB_NPOS));
    memset(volume, 0, sizeof *volume);
    volume->type = HFSB_LIT("model");
    volume->source = hfsb_buf_str(&c->repo);
    volume->mount = HFSB_LIT(HFSBI_HUBJOB_MOUNT);
    volume->read_only = true;
    job->volumes = p->volumes;
    job->volume_count = spec->volume_count + (spec->download ? 0 : 1);
}

static void hfsbi_hubjob_fill(const hfsbi_hubjob_create *c,
                              hfsbi_hubjob_parts        *p) {
    hfsb_job_spec *job = &p->spec;
    p->command[0] = HFSB_LIT("/bin/sh");
    p->command[1] = HFSB_LIT("-c");
    p->command[2] = hfsb_cstr(hfsbi_hubjob_boot);
    p->port = HFSBI_HUBJOB_PORT;
    job->space = hfsb_buf_str(&c->owner);
    job->image = c->spec->image;
    job->command = p->command;
    job->command_count = 3;
    job->flavor = c->spec->hardware;
    job->timeout = c->spec->timeout.len ? c->spec->timeout : HFSB_LIT("24h");
    job->ports = &p->port;
    job->port_count = 1;
    hfsbi_hubjob_fill_env(c, p);
    hfsbi_hubjob_fill_labels(c, p);
    hfsbi_hubjob_fill_lists(c, p);
}

static hfsb_status hfsbi_hubjob_create_send(hfsbi_hubjob_create *c,
                                            hfsb_json_doc       *job) {
    hfsbi_hubjob_parts p;
    size_t             secrets = c->spec->secret_count + 3;
    size_t             volumes = c->spec->volume_count + 1;
    hfsb_status        st = HFSB_NOMEM;
    memset(&p, 0, sizeof p);
    p.secrets = (hfsb_hub_pair *)hfsbi_array(&c->opts.alloc, secrets,
                                             sizeof *p.secrets);
    p.volumes = (hfsb_job_volume *)hfsbi_array(&c->opts.alloc, volumes,
                                               sizeof *p.volumes);
    if (p.secrets && p.volumes) {
        hfsbi_hubjob_fill(c, &p);
        st = hfsb_hub_job_run(c->hub, &p.spec, c->opts.cancel, job, &c->err);
    } else {
        (void)hfsbi_fail_status(&c->err, st, "Job");
    }
    hfsbi_array_free(&c->opts.alloc, p.secrets, secrets, sizeof *p.secrets);
    hfsbi_array_free(&c->opts.alloc, p.volumes, volumes, sizeof *p.volumes);
    return st;
}

/* Makes the handle of a job that the Hub described. */
static hfsb_status hfsbi_hubjob_create_adopt(hfsbi_hubjob_create   *c,
                                             const hfsb_json_value *job,
                                             hfsb_err              *err) {
    hfsb_str    id = hfsbi_json_get_str(job, "id");
    hfsb_buf    name = HFSB_INIT;
    hfsb_status st;
    if (!id.len || id.len > 96)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub's answer to a job has no id.");
    name.alloc = c->opts.alloc;
    st = hfsb_buf_printf(&name, "jobs/%s/%.*s", c->owner.ptr, (int)id.len,
                         id.ptr);
    if (st == HFSB_OK)
        st = hfsbi_hubjob_new(&c->opts, hfsb_buf_str(&name), true, &c->box,
                              err);
    else (void)hfsbi_fail_status(err, st, "Job");
    hfsb_buf_free(&name);
    return st;
}

typedef struct hfsbi_hubjob_found {
    hfsbi_hubjob_create *create;
    hfsb_status          status;
} hfsbi_hubjob_found;

static bool hfsbi_hubjob_found_each(void *user, const hfsb_json_value *job) {
    hfsbi_hubjob_found *f = (hfsbi_hubjob_found *)user;
    f->status = hfsbi_hubjob_create_adopt(f->create, job, NULL);
    return false;
}

/* The reply to the request was lost: finds the job by its nonce, several
   times, since the list may lag behind. HFSB_OK: c->box is the job, or there
   is none; else it is not known. */
static hfsb_status hfsbi_hubjob_create_find(hfsbi_hubjob_create *c) {
    hfsb_job_filter    filter = HFSB_INIT;
    hfsb_hub_pair      label = HFSB_INIT;
    hfsbi_hubjob_found found;
    hfsbi_retry        retry = HFSB_INIT;
    hfsb_status        st;
    if (!c->nonce[0]) return HFSB_NOT_FOUND;
    label.key = HFSB_LIT(HFSBI_HUBJOB_NONCE_LABEL);
    label.value = hfsb_cstr(c->nonce);
    filter.space = hfsb_buf_str(&c->owner);
    filter.labels = &label;
    filter.label_count = 1;
    found.create = c;
    found.status = HFSB_OK;
    retry.tries = HFSBI_HUBJOB_LOOKS;
    retry.delay_ms =
        c->opts.times.poll_ms > 0 ? (c->opts.times.poll_ms + 4) / 5 : 1000;
    retry.max_delay_ms = 5 * retry.delay_ms;
    retry.cancel = c->opts.give_up;
    do
        st = hfsb_hub_jobs(c->hub, &filter, hfsbi_hubjob_found_each, &found,
                           c->opts.give_up, NULL);
    while ((st != HFSB_OK || !c->box) && found.status == HFSB_OK &&
           hfsbi_retry_again(&retry) == HFSB_OK);
    return st == HFSB_OK ? found.status : st;
}

/* Runs the job. After a failure c->box is a job that must be cancelled, if
   any, and c->left says that there may be one nobody knows. */
static hfsb_status hfsbi_hubjob_create_run(hfsbi_hubjob_create *c) {
    hfsb_json_doc job = HFSB_INIT;
    hfsb_status   st, found;
    job.alloc = c->opts.alloc;
    hfsbi_hubjob_create_log(c, "Creating sandbox: a job in ", c->owner.ptr);
    if (hfsb_cancel_is_set(c->opts.cancel)) return HFSB_CANCELLED;
    st = hfsbi_hubjob_create_send(c, &job);
    if (st == HFSB_OK) {
        st = hfsbi_hubjob_create_adopt(c, job.root, &c->err);
        if (st == HFSB_OK) {
            hfsbi_sandbox_log(c->box, "Job created: %s", c->box->page.ptr);
            found = hfsbi_hubjob_take_url(c->box, job.root, &c->err);
            if (found == HFSB_NOMEM) st = found;
        }
    }
    hfsb_json_free(&job);
    if (c->box || !hfsbi_create_may_have_run(st)) return st;
    found = hfsbi_hubjob_create_find(c);
    c->left = found != HFSB_OK && !c->box;
    if (!c->box || st == HFSB_CANCELLED || st == HFSB_NOMEM) return st;
    hfsbi_sandbox_log(c->box, "The Hub's answer was lost, but %s was created.",
                      c->box->id.ptr);
    return hfsbi_ok(&c->err);
}

/* ---- until it answers ---- */

/* Waits for the server: its silence is a failure, and the end of the job's
   log says why. */
static hfsb_status hfsbi_hubjob_create_answer(hfsbi_hubjob_create *c) {
    hfsb_sandbox *s = c->box;
    long long     deadline = hfsb_clock_ms() + s->o.times.wait_ms;
    hfsbi_probe   p = HFSB_INIT;
    char          seconds[HFSBI_SECONDS];
    hfsb_status   st;
    hfsbi_seconds_text(s->o.times.wait_ms, seconds);
    hfsbi_sandbox_log(s, "Waiting for the job to start (timeout: %ss)...",
                      seconds);
    st = hfsbi_hubjob_await_url(s, c->spec, deadline, &c->err);
    if (st != HFSB_OK) return st;
    p.before = "";
    p.fresh = p.look = true;
    p.look_at = hfsb_clock_ms() + s->o.times.poll_ms;
    st = hfsbi_probe_run(s, &p, deadline - hfsb_clock_ms(), &c->err);
    if (st == HFSB_TIMEOUT) hfsbi_log_end_add(s, c->spec, "job", &c->err);
    return st;
}

/* ---- undo ---- */

static void hfsbi_hubjob_create_undo(hfsbi_hubjob_create *c, hfsb_status st) {
    char        end[HFSB_ERR_SIZE / 2];
    hfsb_err    why = HFSB_INIT;
    hfsb_status ended;
    end[0] = '\0';
    if (st == HFSB_CANCELLED)
        (void)hfsbi_fail(&c->err, st, 0, "Sandbox creation cancelled%s%s",
                         c->box ? ": " : "", c->box ? c->box->id.ptr : "");
    hfsbi_create_scrub(&c->opts, c->spec, c->err.msg);
    if (c->box && hfsbi_create_keep(c->spec, c->box, st, &c->err)) return;
    if (c->box) {
        ended = hfsbi_hubjob_end(c->hub, c->box->id, 0, c->opts.give_up, NULL,
                                 &why);
        c->left = ended != HFSB_OK && ended != HFSB_NOT_FOUND;
        if (c->left) {
            hfsbi_create_scrub(&c->opts, c->spec, why.msg);
            (void)snprintf(end, sizeof end,
                           "\nThe job %s is left, and may cost money: it "
                           "could not be cancelled (%.160s). Cancel it at "
                           "%.300s",
                           c->box->id.ptr, why.msg, c->box->page.ptr);
            hfsbi_sandbox_log(c->box, "Warning: %s", end + 1);
        } else {
            (void)snprintf(end, sizeof end, "\nThe job %s was cancelled.",
                           c->box->id.ptr);
        }
    } else if (c->left) {
        (void)snprintf(end, sizeof end,
                       "\nA job of %.80s may be left, and cost money: look "
                       "for the label " HFSBI_HUBJOB_LABEL "=1.",
                       c->owner.ptr);
    }
    hfsbi_create_append(&c->err, end);
}

/* ---- create ---- */

static hfsb_status hfsbi_hubjob_create_all(hfsbi_hubjob_create *c) {
    hfsb_status st = hfsbi_hubjob_create_check(c);
    if (st == HFSB_OK) st = hfsbi_hubjob_create_names(c);
    if (st == HFSB_OK) st = hfsbi_hubjob_create_upload(c);
    if (st == HFSB_OK) st = hfsbi_hubjob_create_run(c);
    if (st == HFSB_OK) st = hfsbi_hubjob_create_answer(c);
    if (st == HFSB_OK && hfsb_cancel_is_set(c->opts.cancel))
        st = HFSB_CANCELLED;
    return st;
}

HFSBI_FN hfsb_status hfsbi_hubjob_make(const hfsb_sandbox_spec *spec,
                                       const hfsb_sandbox_opts *opts,
                                       hfsb_buf *left, hfsb_sandbox **out,
                                       hfsb_err *err) {
    hfsbi_hubjob_create c = HFSB_INIT;
    hfsb_status         st;
    c.spec = spec;
    if (opts) c.opts = *opts;
    /* an address that was given is not that of a new job */
    c.opts.space_url = HFSB_LIT("");
    c.owner.alloc = c.token.alloc = c.repo.alloc = c.file.alloc = c.url.alloc =
        c.opts.alloc;
    st = hfsbi_hubjob_create_all(&c);
    *out = NULL;
    if (st != HFSB_OK) {
        hfsbi_hubjob_create_undo(&c, st);
        if (left && c.left && c.box &&
            hfsb_buf_append(left, c.box->id) != HFSB_OK)
            hfsb_buf_truncate(left, 0); /* the message names it */
        hfsbi_sandbox_free(c.box);
        if (err) *err = c.err;
    } else {
        *out = c.box;
        (void)hfsbi_ok(err);
    }
    if (c.token.ptr) hfsb_secret_wipe(c.token.ptr, c.token.len);
    hfsb_buf_free(&c.token);
    hfsb_buf_free(&c.owner);
    hfsb_buf_free(&c.repo);
    hfsb_buf_free(&c.file);
    hfsb_buf_free(&c.url);
    return st;
}
