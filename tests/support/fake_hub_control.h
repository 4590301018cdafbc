/* fake_hub_control.h - /_fake/...: the same for shells and other languages,
   without a token. Part of fake_hub.h.

   POST   /_fake/fault    {"method","path","nth","times" (-1: always),
                          "percent","status","shape","message","code","fields",
                          "delay_ms","cut","work"}; shape: "error",
                          "error_list", "errors", "description", "text",
                          "html", "empty", "raw"; cut: "close", "reset",
                          "head", "body", "reset_body"
   DELETE /_fake/fault    none any more
   POST   /_fake/space    {"id","days","hidden"}: one that was there before
   GET    /_fake/space/{owner}/{name}
                          {"id","hidden","hardware","sleep","commits","head",
                          "secrets":{},"variables":{},"files":{path:size},
                          "work_dir","direct"}, or 404
   GET    /_fake/spaces   [id, ...] without the template
   GET    /_fake/jobs     [id, ...] of those with an exposed port
                          that have not ended
   GET    /_fake/models   [{"id","private","files":[path, ...]}]
   POST   /_fake/stages   {"id" (all when it is missing),"stages"}
   POST   /_fake/log      {"id","which","line"}
   GET    /_fake/requests [{"method","target","edge","status","fields":{},
                          "body"}], /_fake's own left aside
   DELETE /_fake/requests counts begin at 0 again */

static int fh_choice(hfsb_str word, const char *const *list, int count) {
    int i;
    for (i = 0; i < count; i++)
        if (fh_same(word, list[i])) return i;
    return 0;
}

static long long fh_number(const fh_call *c, const char *key) {
    return hfsb_json_int(hfsb_json_get(c->json.root, key), 0);
}

static const char *fh_word(const fh_call *c, const char *key) {
    hfsb_str none = HFSB_INIT;
    return hfsb_json_str(hfsb_json_get(c->json.root, key), none).ptr;
}

static void fh_control_fault(fh_call *c) {
    static const char *const shapes[] = {
        "error", "error_list", "errors", "description",
        "text",  "html",       "empty",  "raw"};
    static const char *const cuts[] = {"",     "close", "reset",
                                       "head", "body",  "reset_body"};
    fh_fault_spec f = HFSB_INIT;
    f.method = fh_word(c, "method");
    f.path = fh_word(c, "path");
    f.nth = (size_t)fh_number(c, "nth");
    f.times = fh_number(c, "times") < 0 ? FH_ALWAYS
                                        : (size_t)fh_number(c, "times");
    f.percent = (unsigned)fh_number(c, "percent");
    f.status = (int)fh_number(c, "status");
    f.shape = (fh_shape)fh_choice(fh_arg(c, "shape"), shapes, 8);
    f.message = fh_word(c, "message");
    f.code = fh_word(c, "code");
    f.fields = fh_word(c, "fields");
    f.delay_ms = fh_number(c, "delay_ms");
    f.cut = (fh_cut)fh_choice(fh_arg(c, "cut"), cuts, 6);
    f.work = hfsb_json_bool(hfsb_json_get(c->json.root, "work"), false);
    fh_fault(c->hub, &f);
}

static void fh_put_pairs(hfsb_json_writer *w, const char *key,
                         const fh_pair *list) {
    fh_key(w, key);
    hfsb_json_put_object(w);
    for (; list; list = list->next) {
        hfsb_json_put_key(w, hfsb_buf_str(&list->key));
        hfsb_json_put_str(w, hfsb_buf_str(&list->value));
    }
    hfsb_json_put_end(w);
}

static void fh_control_space(fh_call *c) {
    hfsb_json_writer w;
    hfsb_buf         id = HFSB_INIT;
    fh_space        *s;
    fh_entry        *e;
    char             direct[64] = "";
    FH_MUST(hfsb_buf_printf(&id, "%.*s/%.*s", (int)c->parts[2].len,
                            c->parts[2].ptr, (int)c->parts[3].len,
                            c->parts[3].ptr));
    s = fh_find(c->hub, hfsb_buf_str(&id));
    hfsb_buf_free(&id);
    if (!s) {
        fh_no_repo(c->reply);
        return;
    }
    fh_json(&w, c->reply);
    hfsb_json_put_object(&w);
    fh_text(&w, "id", s->id.ptr);
    fh_bool(&w, "hidden", s->hidden);
    fh_text(&w, "hardware", s->hardware);
    fh_int(&w, "sleep", s->sleep);
    fh_int(&w, "commits", (long long)s->commits);
    fh_text(&w, "head", s->head);
    fh_put_pairs(&w, "secrets", s->secrets);
    fh_put_pairs(&w, "variables", s->variables);
    fh_key(&w, "files");
    hfsb_json_put_object(&w);
    for (e = s->files; e; e = e->next) {
        hfsb_json_put_key(&w, hfsb_buf_str(&e->path));
        hfsb_json_put_uint(&w, e->size);
    }
    hfsb_json_put_end(&w);
    if (s->machine && s->machine->port)
        snprintf(direct, sizeof direct, "http://127.0.0.1:%u",
                 s->machine->port);
    fh_text_or_null(&w, "work_dir", s->machine ? s->machine->work.ptr : "");
    fh_text_or_null(&w, "direct", direct);
    hfsb_json_put_end(&w);
    fh_done(&w);
}

static void fh_put_record(hfsb_json_writer *w, const fh_record *r) {
    hfsb_str left = hfsb_buf_str(&r->fields);
    hfsb_json_put_object(w);
    fh_text(w, "method", r->method.ptr);
    fh_text(w, "target", r->target.ptr);
    fh_bool(w, "edge", r->edge);
    fh_int(w, "status", r->status);
    fh_key(w, "fields");
    hfsb_json_put_object(w);
    while (left.len) {
        size_t   end = hfsb_str_find(left, HFSB_LIT("\r\n"));
        hfsb_str line = hfsb_str_slice(left, 0, end);
        size_t   colon = hfsb_str_find_byte(line, ':');
        left = hfsb_str_slice(left, end + 2, left.len);
        if (colon == HFSB_NPOS) continue;
        hfsb_json_put_key(w, hfsb_str_slice(line, 0, colon));
        hfsb_json_put_str(w, hfsb_str_slice(line, colon + 2, line.len));
    }
    hfsb_json_put_end(w);
    fh_key(w, "body");
    hfsb_json_put_str(w, hfsb_buf_str(&r->body));
    hfsb_json_put_end(w);
}

static void fh_control_list(fh_call *c, bool requests) {
    hfsb_json_writer w;
    const fh_record *r;
    fh_space        *s;
    fh_json(&w, c->reply);
    hfsb_json_put_array(&w);
    for (r = c->hub->first; requests && r; r = r->next)
        if (!hfsb_str_starts(hfsb_buf_str(&r->path), HFSB_LIT("/_fake/")))
            fh_put_record(&w, r);
    for (s = c->hub->spaces; !requests && s; s = s->next)
        if (!s->gone && !s->reserved)
            hfsb_json_put_str(&w, hfsb_buf_str(&s->id));
    hfsb_json_put_end(&w);
    fh_done(&w);
}

static void fh_control_jobs(fh_call *c) {
    hfsb_json_writer w;
    const fh_job    *j;
    fh_json(&w, c->reply);
    hfsb_json_put_array(&w);
    for (j = c->hub->jobs; j; j = j->next)
        if (j->box && fh_job_is_live(j)) hfsb_json_put_str(&w, hfsb_cstr(j->id));
    hfsb_json_put_end(&w);
    fh_done(&w);
}

static void fh_control_models(fh_call *c) {
    hfsb_json_writer w;
    const fh_space  *s;
    const fh_entry  *e;
    fh_json(&w, c->reply);
    hfsb_json_put_array(&w);
    for (s = c->hub->spaces; s; s = s->next) {
        if (!s->model) continue;
        hfsb_json_put_object(&w);
        fh_text(&w, "id", s->id.ptr);
        fh_bool(&w, "private", s->hidden);
        fh_key(&w, "files");
        hfsb_json_put_array(&w);
        for (e = s->files; e; e = e->next)
            hfsb_json_put_str(&w, hfsb_buf_str(&e->path));
        hfsb_json_put_end(&w);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    fh_done(&w);
}

static void fh_control(fh_call *c) {
    bool        post = fh_method(c, "POST");
    const char *id = fh_word(c, "id");
    fh_raw(c->reply, 200, FH_JSON, "{}");
    if (fh_part(c, 1, "fault") && post) fh_control_fault(c);
    else if (fh_part(c, 1, "fault")) fh_no_faults(c->hub);
    else if (fh_part(c, 1, "space") && post && id)
        fh_add_space(c->hub, id,
                     hfsb_json_double(hfsb_json_get(c->json.root, "days"), 0),
                     hfsb_json_bool(hfsb_json_get(c->json.root, "hidden"),
                                    false));
    else if (fh_part(c, 1, "space") && c->count == 4) fh_control_space(c);
    else if (fh_part(c, 1, "spaces")) fh_control_list(c, false);
    else if (fh_part(c, 1, "jobs")) fh_control_jobs(c);
    else if (fh_part(c, 1, "models")) fh_control_models(c);
    else if (fh_part(c, 1, "stages") && fh_word(c, "stages"))
        fh_stages(c->hub, id, fh_word(c, "stages"));
    else if (fh_part(c, 1, "log") && id && fh_word(c, "line"))
        fh_log(c->hub, id, fh_word(c, "which") ? fh_word(c, "which") : "run",
               fh_word(c, "line"));
    else if (fh_part(c, 1, "requests") && fh_method(c, "GET"))
        fh_control_list(c, true);
    else if (fh_part(c, 1, "requests")) fh_forget(c->hub);
    else fh_error(c->reply, 404, NULL, "There is no such control");
}
