/* folders.h: folders of the user's, for settings, keys, lists and caches. */
#ifndef ETI_FOLDERS_H
#define ETI_FOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes the folders that PATH lies in, with MODE. The home directory ($HOME) and what
 * is above it are never made: where it is not there, nobody wants files in it. False
 * with errno where one could not be made. */
bool eti_make_user_folders(const char *path, mode_t mode);

#endif
