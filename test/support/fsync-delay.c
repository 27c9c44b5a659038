/* Makes a disk slow: each fsync and fdatasync takes FSYNC_DELAY_US microseconds longer. For LD_PRELOAD on Linux. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slow (const char *name, int file) {
  static int delay = -1;
  int (*sync_file) (int) = (int (*) (int)) dlsym(RTLD_NEXT, name);
  if (delay < 0) {
    const char *text = getenv("FSYNC_DELAY_US");
    delay = text == NULL ? 0 : atoi(text);
  }
  int result = sync_file(file);
  if (delay > 0) usleep((useconds_t) delay);
  return result;
}

int fsync (int file) { return slow("fsync", file); }

int fdatasync (int file) { return slow("fdatasync", file); }
