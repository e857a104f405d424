/* judge.h: what operand.c and compare.c share; private to the harness. */
#ifndef T_KERNELS_JUDGE_H
#define T_KERNELS_JUDGE_H

#include "kernels/ref/array.h"
#include "t/kernels/compare.h"

#define POISON 0xff
enum { MAX_OPERANDS = 32 };

/* BLOCK, or the end of the program where it is NULL. */
void *need(void *block);
void operand_free(struct operand *o);
/* The elements of O, as the reference sees them. */
struct etk_array array_of(const struct operand *o);

#endif
