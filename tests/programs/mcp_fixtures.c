/* mcp_fixtures.c - a program that embeds the server and adds the tools that
   the official conformance suite of MCP asks for (see tests/checks/mcp.sh).
   Serves /mcp on 127.0.0.1 without a token, at a port that the kernel picks
   and that it prints, until a signal ends it. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb_server.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_ms(long ms) {
    struct timespec t;
    t.tv_sec = 0;
    t.tv_nsec = ms * 1000000L;
    nanosleep(&t, NULL);
}

/* A red pixel. */
static const unsigned char pixel[] = {
    0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0,    0,    13,
    'I',  'H', 'D', 'R', 0,    0,    0,    1,    0,    0,    0,    1,
    8,    2,   0,   0,   0,    0x90, 0x77, 0x53, 0xde, 0,    0,    0,
    12,   'I', 'D', 'A', 'T',  8,    0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0,
    0,    3,   1,   1,   0,    0x18, 0xdd, 0x8d, 0xb0, 0,    0,    0,
    0,    'I', 'E', 'N', 'D',  0xae, 0x42, 0x60, 0x82};

/* Two samples of silence, 8 bit, 8 kHz. */
static const unsigned char sound[] = {
    'R',  'I',  'F', 'F', 38,   0,    0, 0, 'W',  'A', 'V', 'E',
    'f',  'm',  't', ' ', 16,   0,    0, 0, 1,    0,   1,   0,
    0x40, 0x1f, 0,   0,   0x40, 0x1f, 0, 0, 1,    0,   8,   0,
    'd',  'a',  't', 'a', 2,    0,    0, 0, 0x80, 0x80};

static hfsb_str bytes(const unsigned char *ptr, size_t n) {
    return hfsb_str_make((const char *)ptr, n);
}

#define TOOL(name)                                    \
    static void name(void *user, hfsb_mcp_call *call, \
                     const hfsb_json_value *arguments)
#define UNUSED() ((void)user, (void)arguments)

TOOL(simple_text) {
    UNUSED();
    hfsb_mcp_text(call, "This is a simple text response for testing.");
}

TOOL(image_content) {
    UNUSED();
    hfsb_mcp_image(call, "image/png", bytes(pixel, sizeof pixel));
}

TOOL(audio_content) {
    UNUSED();
    hfsb_mcp_audio(call, "audio/wav", bytes(sound, sizeof sound));
}

TOOL(embedded_resource) {
    UNUSED();
    hfsb_mcp_resource(call, HFSB_LIT("test://embedded-resource"), "text/plain",
                      HFSB_LIT("This is an embedded resource content."));
}

TOOL(multiple_content_types) {
    UNUSED();
    hfsb_mcp_text(call, "Multiple content types test:");
    hfsb_mcp_image(call, "image/png", bytes(pixel, sizeof pixel));
    hfsb_mcp_resource(call, HFSB_LIT("test://mixed-content-resource"),
                      "application/json",
                      HFSB_LIT("{\"test\":\"data\",\"value\":123}"));
}

TOOL(error_handling) {
    UNUSED();
    hfsb_mcp_fail(call,
                  "This tool intentionally returns an error for testing");
}

TOOL(with_progress) {
    int i;
    UNUSED();
    for (i = 0; i <= 2; i++) {
        if (i) wait_ms(50);
        hfsb_mcp_progress(call, 50 * i, 100, "");
    }
    hfsb_mcp_text(call, "Progress was sent.");
}

TOOL(with_logging) {
    UNUSED();
    hfsb_mcp_log(call, "info", HFSB_LIT("Tool execution started"));
    wait_ms(50);
    hfsb_mcp_log(call, "info", HFSB_LIT("Tool processing data"));
    wait_ms(50);
    hfsb_mcp_log(call, "info", HFSB_LIT("Tool execution completed"));
    hfsb_mcp_text(call, "Logging was done.");
}

TOOL(schema_tool) {
    UNUSED();
    hfsb_mcp_text(call, "ok");
}

static const char schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
    "\"type\":\"object\",\"$defs\":{\"address\":{\"$anchor\":\"addressDef\","
    "\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},"
    "\"city\":{\"type\":\"string\"}}}},\"properties\":{"
    "\"name\":{\"type\":\"string\"},"
    "\"address\":{\"$ref\":\"#/$defs/address\"},"
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},"
    "{\"required\":[\"email\"]}]}],"
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}";

static const struct {
    const char *name, *description, *schema;
    void (*fn)(void *user, hfsb_mcp_call *call,
               const hfsb_json_value *arguments);
} tools[] = {
    {"test_simple_text", "A text.", NULL, simple_text},
    {"test_image_content", "An image.", NULL, image_content},
    {"test_audio_content", "A sound.", NULL, audio_content},
    {"test_embedded_resource", "A resource.", NULL, embedded_resource},
    {"test_multiple_content_types", "A text, an image and a resource.", NULL,
     multiple_content_types},
    {"test_error_handling", "Fails.", NULL, error_handling},
    {"test_tool_with_progress", "Sends progress.", NULL, with_progress},
    {"test_tool_with_logging", "Sends three log lines.", NULL, with_logging},
    {"test_logging_tool", "The same, without being asked.", NULL,
     with_logging},
    {"test_streaming_elicitation", "Sends progress, asks nothing.", NULL,
     with_progress},
    {"json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features",
     schema, schema_tool},
};

static hfsb_status add_tools(hfsb_server *server, hfsb_err *err) {
    hfsb_mcp_opts opts = HFSB_INIT;
    hfsb_mcp     *mcp = NULL;
    hfsb_status   st;
    size_t        i;
    opts.no_tools = true;
    opts.logging = true;
    st = hfsb_server_add_mcp(server, &opts, &mcp, err);
    for (i = 0; i < sizeof tools / sizeof tools[0] && st == HFSB_OK; i++) {
        hfsb_mcp_tool tool = HFSB_INIT;
        tool.name = tools[i].name;
        tool.description = tools[i].description;
        tool.schema = tools[i].schema;
        tool.annotations = "{\"readOnlyHint\":true}";
        tool.fn = tools[i].fn;
        st = hfsb_mcp_add_tool(mcp, &tool, err);
    }
    return st;
}

int main(void) {
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsb_err         err = HFSB_INIT;
    unsigned         port = 0;
    hfsb_status      st;
    opts.no_auth = true;
    st = hfsb_server_open(&opts, &server, &err);
    if (st == HFSB_OK) st = add_tools(server, &err);
    if (st == HFSB_OK)
        st = hfsb_server_listen(server, "127.0.0.1", 0, &port, &err);
    if (st == HFSB_OK) {
        printf("%u\n", port);
        fflush(stdout);
        st = hfsb_server_run(server, &err);
    }
    if (st != HFSB_OK) fprintf(stderr, "mcp_fixtures: %s\n", err.msg);
    hfsb_server_close(server);
    return st == HFSB_OK ? 0 : 1;
}
