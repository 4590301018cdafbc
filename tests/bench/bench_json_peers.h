/* bench_json_peers.h - the contestants written in C++. A run gives 0 when the
   library is not there. */
#ifndef BENCH_JSON_PEERS_H
#define BENCH_JSON_PEERS_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
int    peers_has_simdjson(void);
int    peers_has_rapidjson(void);
size_t peers_begin(const char *text, size_t len); /* what to parse and write */
void   peers_end(void);
size_t peers_simdjson_parse(void);
size_t peers_rapidjson_parse(void);
size_t peers_rapidjson_write(void);
#ifdef __cplusplus
}
#endif
#endif
