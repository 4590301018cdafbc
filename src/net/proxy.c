/* proxy.c - the proxy that the environment names, and the hosts that are
   reached without it.

   http_proxy (else all_proxy, ALL_PROXY) names the proxy, no_proxy (NO_PROXY)
   the exceptions. They are read once, when the transport is opened. A proxy
   that cannot be used is remembered: calls that need it are refused, because
   bypassing it could send them where they must not go. */
#include "net_private.h"

/* The value of a variable; NULL when it is unset or empty. */
static const char *hfsbi_proxy_variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Writes the user and password of the URL as Proxy-Authorization has them. */
static hfsb_status hfsbi_proxy_login(hfsbi_proxy *proxy) {
    hfsb_buf    plain = HFSB_INIT;
    hfsb_status st;
    plain.alloc = proxy->login.alloc;
    st = hfsb_http_decode(proxy->url.user, &plain, NULL);
    if (st == HFSB_OK && hfsb_str_find_byte(proxy->url.user, ':') == HFSB_NPOS)
        st = hfsb_buf_append_byte(&plain, ':');
    if (st == HFSB_OK) st = hfsb_buf_append(&proxy->login, HFSB_LIT("Basic "));
    if (st == HFSB_OK)
        st = hfsb_base64_encode(hfsb_buf_str(&plain), &proxy->login);
    hfsb_buf_free(&plain);
    return st;
}

/* Parses the variable's value; "http://" is assumed where it has no scheme. */
static hfsb_status hfsbi_proxy_parse(hfsbi_proxy *proxy, const char *value) {
    hfsb_str    text = hfsbi_trim(hfsb_cstr(value));
    hfsb_status st;
    if (hfsb_str_find(text, HFSB_LIT("://")) == HFSB_NPOS)
        hfsb_buf_append(&proxy->text, HFSB_LIT("http://"));
    st = hfsb_buf_append(&proxy->text, text);
    if (st != HFSB_OK) return st;
    proxy->usable = hfsb_url_parse(hfsb_buf_str(&proxy->text), &proxy->url,
                                   NULL) == HFSB_OK &&
                    !proxy->url.secure;
    if (!proxy->usable || !proxy->url.user.len) return HFSB_OK;
    st = hfsbi_proxy_login(proxy);
    if (st == HFSB_SYNTAX) proxy->usable = false;
    return st == HFSB_SYNTAX ? HFSB_OK : st;
}

HFSBI_FN hfsb_status hfsbi_proxy_read(hfsbi_proxy *proxy, hfsb_alloc alloc,
                                      hfsb_err *err) {
    /* not HTTP_PROXY: in a CGI program a client sets it with a Proxy field */
    static const char *const names[] = {"http_proxy", "all_proxy",
                                        "ALL_PROXY"};
    const char              *value = NULL, *except;
    hfsb_status              st = HFSB_OK;
    size_t                   i;
    memset(proxy, 0, sizeof *proxy);
    proxy->text.alloc = proxy->login.alloc = proxy->except.alloc = alloc;
    for (i = 0; i < sizeof names / sizeof *names && !value; i++) {
        value = hfsbi_proxy_variable(names[i]);
        proxy->name = value ? names[i] : NULL;
    }
    if (!value) return HFSB_OK;
    except = hfsbi_proxy_variable("no_proxy");
    if (!except) except = hfsbi_proxy_variable("NO_PROXY");
    st = hfsbi_proxy_parse(proxy, value);
    if (st == HFSB_OK) st = hfsb_buf_append(&proxy->except, hfsb_cstr(except));
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "proxy settings");
}

HFSBI_FN void hfsbi_proxy_free(hfsbi_proxy *proxy) {
    hfsb_buf_free(&proxy->text);
    hfsb_buf_free(&proxy->login);
    hfsb_buf_free(&proxy->except);
}

/* ---- exceptions ---- */

static hfsb_str hfsbi_proxy_without_dot(hfsb_str host) {
    if (host.len && host.ptr[host.len - 1] == '.') host.len--;
    return host;
}

/* Removes ":port" from the end of an entry and returns the port; 0: there is
   none. An IPv6 address contains several colons, and is in brackets when a
   port follows. */
static unsigned hfsbi_proxy_take_port(hfsb_str *entry) {
    size_t             i = entry->len;
    unsigned long long port = 0;
    while (i && hfsbi_is_digit(entry->ptr[i - 1])) i--;
    if (!i || entry->ptr[i - 1] != ':' ||
        !hfsbi_read_decimal(hfsb_str_slice(*entry, i, entry->len), 99999,
                            &port))
        return 0;
    if (hfsb_str_count_byte(*entry, ':') > 1 &&
        (i < 2 || entry->ptr[i - 2] != ']'))
        return 0;
    *entry = hfsb_str_slice(*entry, 0, i - 1);
    return (unsigned)port;
}

/* True when one entry of the list covers the host. */
static bool hfsbi_proxy_entry_fits(hfsb_str entry, hfsb_str host,
                                   unsigned port) {
    unsigned only;
    if (entry.len == 1 && *entry.ptr == '*') return true;
    only = hfsbi_proxy_take_port(&entry);
    if (only && only != port) return false;
    if (entry.len > 1 && *entry.ptr == '[' && entry.ptr[entry.len - 1] == ']')
        entry = hfsb_str_slice(entry, 1, entry.len - 1);
    if (entry.len && *entry.ptr == '*')
        entry = hfsb_str_slice(entry, 1, entry.len);
    if (entry.len && *entry.ptr == '.')
        entry = hfsb_str_slice(entry, 1, entry.len);
    entry = hfsbi_proxy_without_dot(entry);
    if (!entry.len || entry.len > host.len) return false;
    if (!hfsb_http_same(hfsb_str_slice(host, host.len - entry.len, host.len),
                        entry))
        return false;
    return entry.len == host.len || host.ptr[host.len - entry.len - 1] == '.';
}

HFSBI_FN bool hfsbi_proxy_excepts(hfsb_str list, hfsb_str host,
                                  unsigned port) {
    size_t at = 0, end;
    host = hfsbi_proxy_without_dot(host);
    for (; at < list.len; at = end + 1) {
        for (end = at; end < list.len && list.ptr[end] != ',' &&
                       !hfsbi_is_blank(list.ptr[end]);)
            end++;
        if (hfsbi_proxy_entry_fits(hfsb_str_slice(list, at, end), host, port))
            return true;
    }
    return false;
}

HFSBI_FN bool hfsbi_proxy_serves(const hfsbi_proxy *proxy,
                                 const hfsb_url    *url) {
    return proxy->name && !hfsbi_proxy_excepts(hfsb_buf_str(&proxy->except),
                                               url->host, url->port);
}
