/* Asks the model for a summary, and hands its answer on. */
#include "foreshorten.h"

static fs_error step(void) {
  fs_texts replies = fs_replies();
  if (replies.len == 0) {
    fs_text system = fs_of("Summarize the record, as data. Write these headings, each with a line under it:\n");
    fs_texts sections = fs_sections();
    for (size_t at = 0; at < sections.len; at++) {
      fs_add(&system, fs_of("## "));
      fs_add(&system, sections.at[at]);
      fs_add(&system, fs_of("\n"));
    }
    fs_text user = {0}, prior = fs_prior();
    if (prior.len) {
      fs_add(&user, fs_of("The summary so far:\n"));
      fs_add(&user, prior);
      fs_add(&user, fs_of("\n\nWhat happened since:\n"));
    }
    fs_add(&user, fs_span_text(0, FS_ALL));
    fs_ask(system, user, fs_max_output_tokens());
    return NULL;
  }
  /* No heading of its own: the answer has them all. */
  fs_section(fs_of(""), replies.at[0]);
  return NULL;
}

FS_SUMMARIZER(step)
