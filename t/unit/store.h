/* SPDX-License-Identifier: Apache-2.0 */
/* store.h: runs that were trained long ago, in ./runs: many, and made at once. */
#ifndef ETUDE_T_STORE_H
#define ETUDE_T_STORE_H

/* Writes runs/NAME, begun in hour NUMBER, in that STATE a minute later; a run of this
 * process if it goes on. */
void store_run(const char *name, int number, const char *state);
/* Writes runs/n0001 and so on, of the hours [FROM, TO), finished. */
void store_runs(int from, int to);
/* PATH was written a minute after hour NUMBER; 0: it will be in an hour, as where
 * clocks differ. */
void store_date(const char *path, int number);
/* Removes ./PATH and all in it. */
void store_remove(const char *path);

#endif
