/* Results that no model reads give way to a preview: base64, hexadecimal, minified code, long lines of numbers.
 * Oldest first, until the target is reached; the beginning stays, for it often says what the rest is.
 *
 * [config]: `least`, bytes below which a result is left alone (4,000); `head` and `tail`, bytes of the preview (400, 100). */
#include "foreshorten.h"

/* Bytes looked at, at the beginning and in the middle. */
enum { LOOK = 2048 };

/* Whether most of the text is runs that no language has words of, numbers, or long lines of code without spaces. */
static bool is_blob(fs_text text) {
  if (text.len < 256) return false;
  size_t run = 0, in_words = 0, in_runs = 0, lines = 1, hex = 0;
  for (size_t at = 0; at <= text.len; at++) {
    uint8_t byte = at < text.len ? (uint8_t)text.at[at] : ' ';
    hex += (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
    lines += byte == '\n';
    /* Of the letters beyond ASCII nothing is said: scripts without spaces are no blobs. */
    if (byte > ' ' && byte < 0x7f) {
      run++;
      continue;
    }
    if (run >= 20) in_words += run;
    if (run >= 60) in_runs += run;
    run = 0;
  }
  return in_runs * 2 > text.len || hex * 10 > text.len * 7 || (text.len / lines > 400 && in_words * 2 > text.len);
}

static bool looks_like_a_blob(uint32_t entry, uint32_t size) {
  if (!is_blob(fs_part_text(entry, 0, 0, LOOK))) return false;
  return size < 3 * LOOK || is_blob(fs_part_text(entry, 0, size / 2, LOOK));
}

static fs_error plan(void) {
  uint32_t least = (uint32_t)fs_config_number("least", 4000);
  uint32_t head = (uint32_t)fs_config_number("head", 400), tail = (uint32_t)fs_config_number("tail", 100);
  fs_bytes kinds = fs_kinds(0, FS_ALL), levels = fs_levels(0, FS_ALL);
  fs_halves marks = fs_marks(0, FS_ALL);
  fs_words sizes = fs_sizes(0, FS_ALL);
  uint32_t elided = 0;
  for (uint32_t entry = 0; entry < kinds.len; entry++) {
    bool open = kinds.at[entry] == FS_RESULT && !(marks.at[entry] & (FS_PROTECTED | FS_RECALL | FS_ORPHAN));
    if (!open || levels.at[entry] >= FS_PREVIEW || sizes.at[entry] < least) continue;
    if (fs_reached_target()) break;
    if (!looks_like_a_blob(entry, sizes.at[entry])) continue;
    elided += fs_offload(&entry, 1, head, tail).at[0] == 0;
  }
  if (elided) {
    fs_text line = {0};
    fs_add_number(&line, elided);
    fs_add(&line, fs_of(" results that were encoded or minified"));
    fs_explain(line);
  }
  return NULL;
}

FS_STAGE(plan)
