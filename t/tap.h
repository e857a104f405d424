/* SPDX-License-Identifier: Apache-2.0 */
/* tap.h: tests that print TAP (Test Anything Protocol 13).
 *
 * int main(void) { plan(2); ok(1 + 1 == 2, "one and one are two"); ... return done(); }
 * Names are sentences about behaviour. A failure prints what was got and wanted. */
#ifndef ETUDE_T_TAP_H
#define ETUDE_T_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void plan(int tests);           /* known beforehand; or call done_testing's form */
void skip_all(const char *why); /* prints the plan and exits 0 */
int done(void);                 /* prints a plan if none was, returns main's status */

bool ok(bool pass, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool is_int(int64_t got, int64_t want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool is_str(const char *got, const char *want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* |got - want| <= tol * max(1, |want|); NaN never passes. */
bool is_near(double got, double want, double tol, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Element-wise as is_near over N floats; prints the worst element. */
bool is_near_array(const float *got, const float *want, int64_t n, double tol,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void skip(int tests, const char *why);
void diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void bail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A context of a test is freed with nothing left in it, or the test fails (freed.c). */
struct et_ctx;
void tap_ctx_free(struct et_ctx **cx);
#define et_ctx_free(cx) tap_ctx_free(cx)
void tap_leaked(uint64_t blocks); /* what a context held when it was freed */
bool tap_has_leaked(void); /* one of this process did: for a test's own processes */

#endif
