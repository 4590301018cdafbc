// bench_json_peers.cpp - RapidJSON and simdjson for bench_json.c, as fast as
// their documentation says: simdjson's parser is used again and its input is
// padded beforehand.
#include "bench_json_peers.h"

#if __has_include(<simdjson.h>)
#include <simdjson.h>
#define BENCH_SIMDJSON 1
#endif
#if __has_include(<rapidjson/document.h>)
#define RAPIDJSON_SSE2
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#define BENCH_RAPIDJSON 1
#endif

static const char *text_ptr;
static size_t      text_len;

#ifdef BENCH_SIMDJSON
static simdjson::dom::parser   simd_parser;
static simdjson::padded_string simd_text;

int peers_has_simdjson(void) { return 1; }

size_t peers_simdjson_parse(void) {
    simdjson::dom::element root;
    return simd_parser.parse(simd_text).get(root) == simdjson::SUCCESS;
}
#else
int    peers_has_simdjson(void) { return 0; }
size_t peers_simdjson_parse(void) { return 0; }
#endif

#ifdef BENCH_RAPIDJSON
static rapidjson::Document    *rapid_tree;
static rapidjson::StringBuffer rapid_out;

int peers_has_rapidjson(void) { return 1; }

size_t peers_rapidjson_parse(void) {
    rapidjson::Document doc;
    doc.Parse<rapidjson::kParseValidateEncodingFlag |
              rapidjson::kParseFullPrecisionFlag>(text_ptr, text_len);
    return !doc.HasParseError();
}

size_t peers_rapidjson_write(void) {
    rapid_out.Clear();
    rapidjson::Writer<rapidjson::StringBuffer> writer(rapid_out);
    rapid_tree->Accept(writer);
    return rapid_out.GetSize();
}
#else
int    peers_has_rapidjson(void) { return 0; }
size_t peers_rapidjson_parse(void) { return 0; }
size_t peers_rapidjson_write(void) { return 0; }
#endif

size_t peers_begin(const char *text, size_t len) {
    text_ptr = text;
    text_len = len;
#ifdef BENCH_SIMDJSON
    simd_text = simdjson::padded_string(text, len);
#endif
#ifdef BENCH_RAPIDJSON
    rapid_tree = new rapidjson::Document;
    rapid_tree->Parse(text, len);
#endif
    return len;
}

void peers_end(void) {
#ifdef BENCH_RAPIDJSON
    delete rapid_tree;
    rapid_tree = nullptr;
#endif
}
