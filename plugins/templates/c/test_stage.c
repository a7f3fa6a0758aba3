/* The stage on this machine, with a record of its own: no WebAssembly needed.
 *   cc -o test test_stage.c stage.c foreshorten.c && ./test */
#include "foreshorten.h"
#include <assert.h>
#include <stdio.h>

static uint8_t kinds[] = {FS_USER, FS_CALL, FS_RESULT, FS_CALL, FS_RESULT, FS_CALL, FS_RESULT};
static uint16_t marks[] = {0, 0, 0, 0, 0, FS_PROTECTED, FS_PROTECTED};
static uint32_t sizes[] = {7, 2, 20000, 2, 5, 2, 20000};
static uint32_t cleared[8];
static size_t count;

void fs_import_config(fs_text *out) { *out = fs_of("{}"); }
void fs_import_kinds(uint32_t start, uint32_t len, fs_bytes *out) { (void)start, (void)len; *out = (fs_bytes){kinds, 7}; }
void fs_import_marks(uint32_t start, uint32_t len, fs_halves *out) { (void)start, (void)len; *out = (fs_halves){marks, 7}; }
void fs_import_sizes(uint32_t start, uint32_t len, fs_words *out) { (void)start, (void)len; *out = (fs_words){sizes, 7}; }
uint64_t fs_import_view_tokens(void) { return 12000; }
uint64_t fs_import_target(void) { return 1000; }
void fs_import_clear(FS_IN, fs_bytes *out) {
  for (size_t at = 0; at < len; at++) cleared[count++] = entries[at];
  *out = (fs_bytes){fs_alloc(len), len};
}

const fs_verdict *fs_export_plan(void);

int main(void) {
  assert(!fs_export_plan()->is_error);
  assert(count == 1 && cleared[0] == 2);
  puts("ok");
  return 0;
}
