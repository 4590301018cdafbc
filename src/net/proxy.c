/* proxy.c - proxies, as the environment names them. */
#include "net_private.h"

/* A variable that is set and not empty. */
static const char *hfsbi_proxy_variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* "name:password" of the URL, decoded and coded as Basic has it. */
static hfsb_status hfsbi_proxy_login(hfsbi_proxy *proxy) {
    hfsb_buf    plain = HFSB_INIT;
    hfsb_status st;
    plain.alloc = proxy->login.alloc;
    st = hfsb_http_decode(proxy->url.user, &plain, NULL);
    if (st == HFSB_OK && hfsb_str_find_byte(proxy->url.user, ':') == HFSB_NPOS)
        st = hfsb_buf_append_byte(&plain, ':');
    if (st == HFSB_OK)
        st = hfsb_buf_append(&proxy->login, hfsb_str_make("Basic ", 6));
    if (st == HFSB_OK)
        st = hfsb_base64_encode(hfsb_buf_str(&plain), &proxy->login);
    hfsb_buf_free(&plain);
    return st;
}

/* The URL of the proxy in proxy->text, "http://" in front where it has no
   scheme. One that is not usable is kept as such: to go around it would be
   worse than to refuse. */
static hfsb_status hfsbi_proxy_parse(hfsbi_proxy *proxy, const char *value) {
    hfsb_str    text = hfsbi_trim(hfsb_cstr(value));
    hfsb_status st = HFSB_OK;
    if (hfsb_str_find(text, hfsb_str_make("://", 3)) == HFSB_NPOS)
        st = hfsb_buf_append(&proxy->text, hfsb_str_make("http://", 7));
    if (st == HFSB_OK) st = hfsb_buf_append(&proxy->text, text);
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
    /* HTTP_PROXY is left out: in a CGI program it is a field of whoever made
       the request. */
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

/* ---- what goes around it ---- */

static hfsb_str hfsbi_proxy_without_dot(hfsb_str host) {
    if (host.len && host.ptr[host.len - 1] == '.') host.len--;
    return host;
}

/* Takes ":port" from the end of an entry; 0: it has none. An IPv6 address has
   more than one colon, and brackets when a port follows. */
static unsigned hfsbi_proxy_take_port(hfsb_str *entry) {
    size_t   i = entry->len;
    unsigned port = 0, scale = 1;
    while (i && entry->ptr[i - 1] >= '0' && entry->ptr[i - 1] <= '9') {
        if (scale > 10000) return 0;
        port += scale * (unsigned)(entry->ptr[--i] - '0');
        scale *= 10;
    }
    if (!i || i == entry->len || entry->ptr[i - 1] != ':') return 0;
    if (hfsb_str_count_byte(*entry, ':') > 1 &&
        (i < 2 || entry->ptr[i - 2] != ']'))
        return 0;
    *entry = hfsb_str_slice(*entry, 0, i - 1);
    return port;
}

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
                       list.ptr[end] != ' ' && list.ptr[end] != '\t';)
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
