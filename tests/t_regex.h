/* t_regex.h - what the tests of REGEX share. */
#ifndef T_REGEX_H
#define T_REGEX_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../src/ignore.h"
#include "../src/regex_parts.h"
#endif
#endif
