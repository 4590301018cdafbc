/* session_script.c - what a job is given for a script. Depends on: path,
   file, sandbox, session_preload. */
#include "session_parts.h"

/* A job gets its script base64-encoded in one argument, which Linux limits to
   128 KiB. */
enum { HFSBI_SCRIPT_MAX = 90 * 1000 };

static hfsb_status hfsbi_script_long(hfsb_err *err) {
    return hfsbi_fail(err, HFSB_LIMIT, 0,
                      "The script is longer than the 90 kB that a job can be "
                      "given: upload it to a repository on the Hub and give "
                      "its URL, or split it and let a small script load the "
                      "rest.");
}

static hfsb_status hfsbi_script_unread(hfsb_session *session, hfsb_str path,
                                       const hfsb_err *why, hfsb_err *err) {
    bool there = session->runtime == HFSB_RUNTIME_SANDBOX;
    if (why->code == HFSB_LIMIT) return hfsbi_script_long(err);
    hfsbi_fail(err, why->code, 0, "The script ");
    hfsbi_err_quote(err, path, 200);
    hfsbi_err_add(err, " cannot be read%s: %s",
                  there ? " from the sandbox" : "", why->msg);
    return why->code;
}

static hfsb_status hfsbi_script_read(hfsb_session *session, hfsb_str path,
                                     const hfsb_cancel *cancel, hfsb_buf *out,
                                     hfsb_err *why) {
    hfsbi_box  *box;
    hfsb_status st;
    if (session->runtime == HFSB_RUNTIME_LOCAL)
        return hfsb_file_read(session->tools->place, path, HFSBI_SCRIPT_MAX,
                              out, NULL, why);
    st = hfsbi_session_hold(session, cancel, &box, why);
    if (st != HFSB_OK) return st;
    st = hfsb_sandbox_get(box->sandbox, path, HFSBI_SCRIPT_MAX, cancel, out,
                          why);
    (void)hfsbi_session_release(session, box, NULL);
    return st;
}

hfsb_status hfsb_session_script(hfsb_session *session, hfsb_str script,
                                hfsb_script_kind  *kind,
                                const hfsb_cancel *cancel, hfsb_buf *out,
                                hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st;
    *kind = hfsb_script_classify(script);
    if (*kind == HFSB_SCRIPT_PATH) {
        st = hfsbi_script_read(session, script, cancel, out, &why);
        why.code = st;
        if (st != HFSB_OK)
            return hfsbi_script_unread(session, script, &why, err);
        *kind = HFSB_SCRIPT_INLINE;
        return hfsbi_ok(err);
    }
    if (script.len > HFSBI_SCRIPT_MAX) return hfsbi_script_long(err);
    st = hfsb_buf_append(out, script);
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "Copying a script");
}
