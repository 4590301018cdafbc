/* test_secret.c - secrets in texts, by their value and by their shape. */
#include "../support/t.h"
static hfsb_str secret_at(const void *owner, size_t i) {
    return hfsb_cstr(((const char *const *)owner)[i]);
}

/* In a block of exactly that size: nothing beyond it may be read. */
static void check_shapes(const char *text, const char *want) {
    size_t n = strlen(text);
    char  *copy = (char *)malloc(n ? n : 1);
    if (!copy) abort();
    memcpy(copy, text, n);
    n = hfsbi_redact_shapes(copy, n);
    if (n != strlen(want) || memcmp(copy, want, n) != 0)
        printf("\"%s\" became \"%.*s\"\n", text, (int)n, copy);
    T_CHECK(n == strlen(want) && memcmp(copy, want, n) == 0);
    free(copy);
}

#define HF "hf_abcdefghijklmnopqrstuvwxyz"

static void hides_what_looks_like_a_secret(void) {
    static const struct {
        const char *text, *want;
    } cases[] = {
        {HF, "***"},
        {"huggingface-cli login --token " HF, "huggingface-cli login --token "
                                              "***"},
        {"x" HF, "x" HF},
        {"export HF_TOKEN=abcd1234; ls", "export HF_TOKEN=***; ls"},
        {"HF_TOKEN='abcd 1234' ls", "HF_TOKEN='***' ls"},
        {"MY_API_KEY: k123456", "MY_API_KEY: ***"},
        {"curl -H 'Authorization: Bearer abc.def' x",
         "curl -H 'Authorization: ***' x"},
        {"curl -H \"X-Sandbox-Authorization: Bearer abc\" x",
         "curl -H \"X-Sandbox-Authorization: ***\" x"},
        {"say bearer abcdef", "say bearer ***"},
        {"git clone https://me:hunter2@host/x", "git clone https://me:***@"
                                                "host/x"},
        {"postgres://u:secret@db/x and http://a/", "postgres://u:***@db/x and "
                                                   "http://a/"},
        {"{\"password\": \"hunter2\", \"n\": 1}",
         "{\"password\": \"***\", \"n\": 1}"},
        {"mysql --password hunter2 -h x", "mysql --password *** -h x"},
        {"--api-key=abcdef", "--api-key=***"},
        {"auth_token=\"a1b2c3\"", "auth_token=\"***\""},
        {"token = \"0123456789abcdef\"", "token = \"***\""},
        {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE "
         "KEY-----\nx",
         "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\n"
         "x"},
        {"-----BEGIN PRIVATE KEY-----\\nMIIEabc", "-----BEGIN PRIVATE KEY***"},
        {"sk-abcdefghijklmnop1234", "***"},
        {"AKIAABCDEFGHIJKLMNOP", "***"},
        {"curl -u me:hunter2 x", "curl -u me:*** x"},
        {"curl --user 'me:hunter 2' x", "curl --user 'me:***' x"},
        {"curl -H 'Cookie: sid=abc123; x=y' z", "curl -H 'Cookie: ***' z"},
        {"Set-Cookie: sid=abc123\nx", "Set-Cookie: ***\nx"},
        {"git clone https://0123456789abcdef@host/x",
         "git clone https://***@host/x"},
        {"PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"},
        {"MYSQL_PWD=hunter2 mysql", "MYSQL_PWD=*** mysql"},
        {"hf auth login --token abcdefgh", "hf auth login --token ***"},
        {"x?X-Amz-Signature=0123456789abcdef0&y", "x?X-Amz-Signature=***&y"},
        {"x?sig=0123456789abcdef0&y", "x?sig=***&y"},
        {"glsa_abcdefghijklmnopqrst", "***"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_shapes(cases[i].text, cases[i].want);
}

static void leaves_ordinary_text_alone(void) {
    static const char *const texts[] = {
        "",
        "ls -la",
        "model.generate(max_new_tokens=512)",
        "tokenizer = AutoTokenizer.from_pretrained(name)",
        "tokenizer.pad_token = \"<pad>\"",
        "pad_token=tokenizer.eos_token",
        "curl -H \"Authorization: Bearer $HF_TOKEN\" x",
        "export HF_TOKEN=$OTHER",
        "password = getpass()",
        "key: value",
        "https://host:8080/path",
        "https://host/a@b:c",
        "git log --author=me",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "://",
        "a://b",
        "HF_TOKEN=",
        "HF_TOKEN",
        "Bearer",
        "Bearer ",
        "Authorization:",
        "docker run -u 1000:1000 --user 0:0 x",
        "sort -u a:b",
        "useradd -u",
        "curl -u $USER:$PASS --user me x",
        "the cookie jar",
        "git clone https://my-company-team@host/x",
        "signature = sign(x)",
        "PWD=/home/me",
        "--token",
        "password:\"",
        "--"};
    size_t i;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        check_shapes(texts[i], texts[i]);
}

/* Whatever the bytes, the text only gets shorter. */
static void any_bytes_are_safe(void) {
    static const char *const words[] = {
        "token", "=", ":", "\"", "'", " ", "://", "@", "-----BEGIN",
        "PRIVATE KEY", "-----END", "\n", "Bearer", "Authorization", "--", "-u", "Cookie",
        "password", "abcd", "hf_0123456789abcdefgh", "$", "\xC3\xA9", "x"};
    unsigned long long seed = 42;
    size_t             round, i;
    for (round = 0; round < 20000; round++) {
        char   text[400], *copy;
        size_t n = 0, count = round % 14;
        for (i = 0; i < count; i++) {
            const char *w;
            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            w = words[(seed >> 33) % (sizeof words / sizeof *words)];
            memcpy(text + n, w, strlen(w));
            n += strlen(w);
            if ((seed >> 20) % 9 == 0) text[n++] = '\0';
        }
        copy = (char *)malloc(n ? n : 1);
        if (!copy) abort();
        memcpy(copy, text, n);
        i = hfsbi_redact_shapes(copy, n);
        T_CHECK(i <= n);
        free(copy);
    }
}

/* A text without separators takes a shorter way, which must find the same: with
   a blank after it the text takes the long one. */
static void a_blank_after_a_text_makes_no_difference(void) {
    static const char *const words[] = {
        "xoxb-0123456789", "xoxb-012345678", "hf_0123456789abcdef", "AKIA",
        "0123456789abcdef", "ASIA0123456789abcdef", "sk-", "/", ",", "@", "[",
        "--token", "password", "Bearer", "authorization", "a.c", "\t",
        "pypi-0123456789abcdefghij", "eyJ", "+", "\xC3\xA9"};
    unsigned long long seed = 7;
    size_t             round, i;
    for (round = 0; round < 20000; round++) {
        char   text[400], longer[400];
        size_t n = 0, m, count = 1 + round % 6;
        for (i = 0; i < count; i++) {
            const char *w = words[t_random(&seed) %
                                  (sizeof words / sizeof *words)];
            memcpy(text + n, w, strlen(w));
            n += strlen(w);
        }
        memcpy(longer, text, n);
        longer[n] = ' ';
        m = hfsbi_redact_shapes(longer, n + 1);
        n = hfsbi_redact_shapes(text, n);
        T_CHECK(m == n + 1 && memcmp(text, longer, n) == 0);
        if (m != n + 1 || memcmp(text, longer, n) != 0)
            printf("\"%.*s\", \"%.*s\"\n", (int)n, text, (int)m, longer);
    }
}

static void names_of_secret_variables(void) {
    static const char *const yes[] = {"HF_TOKEN",   "TOKEN", "DB_PASSWORD",
                                      "AWS_SECRET_ACCESS_KEY", "password",
                                      "OPENAI_API_KEY", "SSH_KEY"};
    static const char *const no[] = {"PATH", "TOKENIZERS_PARALLELISM", "max_tokens", "HOME",
                                     "KEYBOARD", "MONKEY", ""};
    size_t i;
    for (i = 0; i < sizeof yes / sizeof *yes; i++)
        T_CHECK(hfsbi_is_secret_name(hfsb_cstr(yes[i])));
    for (i = 0; i < sizeof no / sizeof *no; i++)
        T_CHECK(!hfsbi_is_secret_name(hfsb_cstr(no[i])));
}

static void hides_values_anywhere(void) {
    static const char *const secrets[] = {"swordfish", "sword", "abc", ""};
    char   text[] = "swordfish, sword-swordfish abc";
    size_t n = hfsbi_redact(secret_at, secrets, 4, text, strlen(text));
    T_CHECK(n == strlen("***, ***-*** abc") &&
            !strcmp(text, "***, ***-*** abc"));
}

int main(void) {
    T_RUN(hides_what_looks_like_a_secret);
    T_RUN(leaves_ordinary_text_alone);
    T_RUN(any_bytes_are_safe);
    T_RUN(a_blank_after_a_text_makes_no_difference);
    T_RUN(names_of_secret_variables);
    T_RUN(hides_values_anywhere);
    return T_END();
}
