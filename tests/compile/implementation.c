/* The one file of a program that holds the implementation. */
#define HFSB_IMPLEMENTATION
#include "headers.h"
