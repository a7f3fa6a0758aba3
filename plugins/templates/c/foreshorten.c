/* What a plugin in C needs besides the interface: memory, and the few functions of a C library that compilers call. */
#include "foreshorten.h"

#ifdef __wasm__
extern uint8_t __heap_base;
static uintptr_t next;

static void *grab(size_t bytes, size_t align) {
  if (next == 0) next = (uintptr_t)&__heap_base;
  uintptr_t at = (next + align - 1) & ~(uintptr_t)(align - 1);
  /* On 32 bits a hostile or mistaken size would wrap around. */
  if (at < next || at + bytes < at) __builtin_trap();
  uintptr_t has = __builtin_wasm_memory_size(0) * (uintptr_t)65536;
  if (at + bytes > has) {
    uintptr_t pages = (at + bytes - has + 65535) / 65536;
    /* A quarter more than needed: growing is a call of the host. */
    if (__builtin_wasm_memory_grow(0, pages + pages / 4) == (size_t)-1 &&
        __builtin_wasm_memory_grow(0, pages) == (size_t)-1)
      __builtin_trap();
  }
  next = at + bytes;
  return (void *)at;
}

/* The host puts what it answers into memory that it gets here. New memory of WebAssembly is zero. */
FS_EXPORT("cabi_realloc") void *cabi_realloc(void *old, size_t had, size_t align, size_t bytes);
void *cabi_realloc(void *old, size_t had, size_t align, size_t bytes) {
  void *at = grab(bytes, align ? align : 1);
  if (had) memcpy(at, old, had < bytes ? had : bytes);
  return at;
}

void *fs_alloc(size_t bytes) { return grab(bytes, 16); }

void *memcpy(void *to, const void *from, size_t bytes) {
  uint8_t *out = to;
  for (const uint8_t *in = from; bytes; bytes--) *out++ = *in++;
  return to;
}
void *memmove(void *to, const void *from, size_t bytes) {
  uint8_t *out = to;
  const uint8_t *in = from;
  if (out <= in) return memcpy(to, from, bytes);
  while (bytes--) out[bytes] = in[bytes];
  return to;
}
void *memset(void *at, int byte, size_t bytes) {
  for (uint8_t *out = at; bytes; bytes--) *out++ = (uint8_t)byte;
  return at;
}
int memcmp(const void *a, const void *b, size_t bytes) {
  const uint8_t *left = a, *right = b;
  for (; bytes; bytes--, left++, right++)
    if (*left != *right) return *left < *right ? -1 : 1;
  return 0;
}
size_t strlen(const char *text) {
  size_t len = 0;
  while (text[len]) len++;
  return len;
}
#else /* a test on this machine */
#include <stdlib.h>
void *fs_alloc(size_t bytes) { return calloc(1, bytes ? bytes : 1); }
#endif

bool fs_contains(fs_text text, const char *what) {
  size_t len = strlen(what);
  for (size_t at = 0; at + len <= text.len; at++)
    if (memcmp(text.at + at, what, len) == 0) return true;
  return false;
}

void fs_add(fs_text *to, fs_text more) {
  if (more.len == 0) return;
  char *at = fs_alloc(to->len + more.len);
  if (to->len) memcpy(at, to->at, to->len);
  memcpy(at + to->len, more.at, more.len);
  *to = (fs_text){at, to->len + more.len};
}

void fs_add_number(fs_text *to, uint64_t number) {
  char digits[20];
  size_t first = sizeof digits;
  do digits[--first] = (char)('0' + number % 10); while (number /= 10);
  fs_add(to, (fs_text){digits + first, sizeof digits - first});
}

uint64_t fs_config_number(const char *key, uint64_t otherwise) {
  fs_text config = fs_config();
  size_t len = strlen(key);
  for (size_t at = 0; at + len + 2 <= config.len; at++) {
    const char *found = config.at + at;
    if (found[0] != '"' || memcmp(found + 1, key, len) != 0 || found[len + 1] != '"') continue;
    size_t digit = at + len + 2;
    while (digit < config.len && (config.at[digit] == ':' || config.at[digit] == ' ')) digit++;
    uint64_t number = 0;
    size_t first = digit;
    for (; digit < config.len && config.at[digit] >= '0' && config.at[digit] <= '9'; digit++)
      number = number * 10 + (uint64_t)(config.at[digit] - '0');
    if (digit > first) return number;
  }
  return otherwise;
}

const fs_verdict *fs_verdict_of(fs_error error) {
  fs_verdict *verdict = fs_alloc(sizeof *verdict);
  if (error) *verdict = (fs_verdict){1, error, strlen(error)};
  return verdict;
}
