/* Clears results that are longer than 10,000 bytes, oldest first, until the target is reached. */
#include "foreshorten.h"

static fs_error plan(void) {
  /* [config] of plugin.toml. */
  uint64_t longest = fs_config_number("longest", 10000);
  fs_bytes kinds = fs_kinds(0, FS_ALL);
  fs_halves marks = fs_marks(0, FS_ALL);
  fs_words sizes = fs_sizes(0, FS_ALL);
  for (uint32_t entry = 0; entry < kinds.len; entry++) {
    bool open = kinds.at[entry] == FS_RESULT && !(marks.at[entry] & FS_PROTECTED);
    if (!open || sizes.at[entry] <= longest) continue;
    if (fs_reached_target()) break;
    /* The answer is a code for each: 0 accepted, else why not. */
    fs_clear(&entry, 1);
  }
  return NULL;
}

FS_STAGE(plan)
