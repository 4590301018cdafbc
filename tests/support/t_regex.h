/* t_regex.h - what the tests of REGEX share. */
#ifndef T_REGEX_H
#define T_REGEX_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../../src/pattern/pattern_private.h"
#endif
#endif
