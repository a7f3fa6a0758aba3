//! Everything a simulator knows, and how a POST request is answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use crate::agent::{Answer, Progress};
use crate::cache::Cache;
use crate::config::{Config, Overflow, Protocol, Summary};
use crate::count::Counter;
use crate::digest::Signer;
use crate::fault::{Fault, Of, Rule};
use crate::legality::{self, Issued};
use crate::log::{Record, Stats, Stop, Verdict};
use crate::overflow::{Excess, output_cap};
use crate::refusal::{Reason, Refusal};
use crate::reply::Reply;
use crate::request::Request;
use crate::summary;
use crate::trouble;
use crate::wire::{Frame, Usage};

/// What came in besides the body.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) key: Option<String>,
    /// `anthropic-version` was sent.
    pub(crate) version: bool,
    /// Which agent this is, where one simulator serves several.
    pub(crate) session: String,
}

/// The state behind the server.
#[derive(Debug)]
pub(crate) struct State {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Arc<Config>,
    counter: Arc<Counter>,
    signer: Signer,
    progress: Progress,
    cache: Cache,
    issued: Issued,
    posts: u64,
    listings: u64,
    unauthorized: u64,
    log: Vec<Record>,
}

impl Inner {
    fn new(config: Config) -> Self {
        let signer = Signer::new(config.seed);
        Self {
            counter: Arc::new(Counter::new(config.counting.clone(), &config.agent.recall_tool, signer.clone())),
            signer,
            config: Arc::new(config),
            progress: Progress::default(),
            cache: Cache::default(),
            issued: Issued::default(),
            posts: 0,
            listings: 0,
            unauthorized: 0,
            log: Vec::new(),
        }
    }
}

impl State {
    pub(crate) fn new(config: Config) -> Self {
        Self { inner: Mutex::new(Inner::new(config)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything but the configuration.
    pub(crate) fn reset(&self) {
        let mut inner = self.lock();
        let counter = Arc::clone(&inner.counter);
        *inner = Inner { counter, ..Inner::new(Config::clone(&inner.config)) };
    }

    /// Changes the configuration and forgets nothing.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Config)) {
        let mut inner = self.lock();
        let mut config = Config::clone(&inner.config);
        change(&mut config);
        let fresh = Inner::new(config);
        (inner.config, inner.counter, inner.signer) = (fresh.config, fresh.counter, fresh.signer);
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.lock().config)
    }

    pub(crate) fn log(&self) -> Vec<Record> {
        self.lock().log.clone()
    }

    pub(crate) fn stats(&self) -> Stats {
        let inner = self.lock();
        let mut stats = Stats { listings: inner.listings, unauthorized: inner.unauthorized, ..Stats::default() };
        for record in &inner.log {
            stats.requests += 1;
            stats.faults += u64::from(record.fault.is_some());
            stats.summaries += u64::from(record.summary);
            stats.bytes += record.bytes;
            match record.verdict {
                Verdict::Answered => {
                    stats.answered += 1;
                    stats.prompt_tokens += record.read_tokens;
                    stats.cached_tokens += record.cached_tokens;
                    stats.output_tokens += record.output_tokens;
                    stats.uncached_bytes += record.uncached_bytes;
                    let recall = &inner.config.agent.recall_tool;
                    stats.recalls += record.calls.iter().filter(|call| call.name == *recall).count() as u64;
                }
                Verdict::Refused(Reason::Overflow, _) => stats.overflows += 1,
                Verdict::Refused(..) => stats.refusals += 1,
                Verdict::Faulted => {}
            }
        }
        stats
    }

    /// Counts a listing request: its number from 1, and the number the next POST request will have.
    pub(crate) fn listing(&self) -> (u64, u64) {
        let mut inner = self.lock();
        inner.listings += 1;
        (inner.listings, inner.posts + 1)
    }

    /// The refusal of a wrong key.
    pub(crate) fn check_key(&self, head: &Head, protocol: Protocol) -> Result<(), Refusal> {
        let mut inner = self.lock();
        if inner.config.key.is_none() || inner.config.key == head.key {
            return Ok(());
        }
        inner.unauthorized += 1;
        let message = match (protocol, &head.key) {
            (Protocol::Messages, Some(_)) => "invalid x-api-key",
            (Protocol::Messages, None) => "x-api-key header is required",
            (_, Some(_)) => "Incorrect API key provided. You can find your API key in your account settings.",
            (_, None) => {
                "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                 Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
            }
        };
        Err(Refusal::new(Reason::BadKey, message).status(401).code("invalid_api_key"))
    }

    /// Answers a POST request.
    pub(crate) fn post(&self, protocol: Protocol, head: &Head, body: &[u8]) -> Reply {
        let (number, config, counter, signer) = {
            let mut inner = self.lock();
            inner.posts += 1;
            (inner.posts, Arc::clone(&inner.config), Arc::clone(&inner.counter), inner.signer.clone())
        };
        let record = Record {
            number,
            protocol,
            session: head.session.clone(),
            body: config.keep_bodies.then(|| body.to_vec()),
            model: String::new(),
            stream: false,
            key_seen: head.key.is_some(),
            summary: false,
            bytes: body.len() as u64,
            uncached_bytes: 0,
            items: 0,
            tools: 0,
            max_output: None,
            prompt_tokens: 0,
            read_tokens: 0,
            cached_tokens: 0,
            cache_written_tokens: 0,
            output_tokens: 0,
            reasoning_tokens: 0,
            window: config.window.at(number),
            status: 0,
            verdict: Verdict::Faulted,
            fault: None,
            stop: None,
            calls: Vec::new(),
            text: String::new(),
        };
        let mut call = Call { state: self, config: &config, signer: &signer, head, record };
        let reply = call.answer(&counter, body).unwrap_or_else(|refusal| call.refuse(&refusal));
        call.record.status = reply.status;
        let id = request_id(number);
        let mut inner = self.lock();
        inner.log.push(call.record);
        // Requests that overlap may end in another order than they came.
        inner.log.sort_by_key(|record| record.number);
        drop(inner);
        if reply.status == 0 { reply } else { reply.header("x-request-id", &id).header("request-id", &id) }
    }
}

/// One POST request on its way to an answer.
struct Call<'a> {
    state: &'a State,
    config: &'a Config,
    signer: &'a Signer,
    head: &'a Head,
    record: Record,
}

impl Call<'_> {
    fn refuse(&mut self, refusal: &Refusal) -> Reply {
        self.record.verdict = Verdict::Refused(refusal.reason, refusal.message.clone());
        let Record { protocol, number, .. } = self.record;
        match refusal.to_json(protocol, &request_id(number)) {
            Some(body) => Reply::json(refusal.status, &body),
            None => Reply::new(refusal.status, "text/plain", ""),
        }
    }

    fn answer(&mut self, counter: &Counter, body: &[u8]) -> Result<Reply, Refusal> {
        let (config, protocol) = (self.config, self.record.protocol);
        self.state.check_key(self.head, protocol)?;
        if body.len() > config.strictness.max_body {
            let message = "Request exceeds the maximum size";
            return Err(Refusal::new(Reason::BodyTooLarge, message).status(413).code("request_too_large"));
        }
        let request = Request::read(protocol, body, counter);
        let is_summary = request.as_ref().is_ok_and(summary::asked_for);
        let rule = config.faults.iter().find(|rule| rule.when.holds(self.record.number) && of(rule, is_summary));
        let fault = rule.map(|rule| &rule.fault);
        self.record.fault = fault.map(Fault::name);
        self.record.summary = is_summary;
        if let Ok(request) = &request {
            self.note(request);
        }
        if let Some(fault) = fault.filter(|fault| fault.comes_first()) {
            return Ok(trouble::instead(fault, protocol, &self.record));
        }
        let request = request?;
        legality::check(&request, self.head.version, config, self.signer, &self.state.lock().issued)?;
        let summary_mode = is_summary.then(|| self.summary_mode());
        if summary_mode == Some(Summary::NoTemperature) && !request.field("temperature").is_null() {
            let message = "Unsupported parameter: 'temperature' is not supported with this model.";
            return Err(Refusal::new(Reason::Temperature, message).of("temperature").code("unsupported_parameter"));
        }
        let (dropped, forced) = match self.fit(&request, fault) {
            Ok(fitted) => fitted,
            Err(refusal) if request.stream && protocol == Protocol::Responses && config.window.overflow_in_stream => {
                self.record.verdict = Verdict::Refused(refusal.reason, refusal.message.clone());
                let code = refusal.code.unwrap_or("context_length_exceeded");
                let event = self.frame(&request, String::new(), None).error_event(&refusal.message, code, 400);
                return Ok(Reply::stream([event.to_text()]));
            }
            Err(refusal) => return Err(refusal),
        };
        Ok(self.speak(&request, fault, summary_mode, dropped, forced))
    }

    /// Writes down what a request is.
    fn note(&mut self, request: &Request) {
        let pieces = request.pieces(0, self.config.counting.old_reasoning);
        let fixed = self.fixed();
        let record = &mut self.record;
        record.model.clone_from(&request.model);
        record.stream = request.stream;
        record.items = request.items.len() as u64;
        record.tools = request.tools.len() as u64;
        record.max_output = request.max_output();
        record.prompt_tokens = pieces.iter().map(|(_, tokens)| tokens).sum::<u64>() + fixed;
        let hit = self.state.lock().cache.look_up(request.protocol, &request.model, &pieces);
        record.uncached_bytes = hit.new_bytes;
    }

    /// What is in every prompt: the opening of the answer, and what nobody sees.
    const fn fixed(&self) -> u64 {
        3 + self.config.counting.hidden
    }

    fn summary_mode(&self) -> Summary {
        let modes = &self.config.summaries;
        let at = usize::try_from(self.state.lock().progress.summaries()).unwrap_or(usize::MAX);
        modes.get(at).or_else(|| modes.last()).copied().unwrap_or(Summary::Good)
    }

    /// Holds the prompt against the window: how many items are dropped, and the stop reason that says so.
    fn fit(&mut self, request: &Request, fault: Option<&Fault>) -> Result<(usize, Option<Stop>), Refusal> {
        let window = &self.config.window;
        let (tokens, prompt) = (self.record.window, self.record.prompt_tokens);
        if let (Some(cap), Some(asked)) = (window.max_output, request.max_output())
            && asked > cap
        {
            return Err(output_cap(request.protocol, asked, cap, &request.model));
        }
        self.record.read_tokens = prompt;
        let (old_reasoning, fixed) = (self.config.counting.old_reasoning, self.fixed());
        let mut cut = |room: u64, say: bool| {
            let dropped = request.truncate(prompt, room);
            let read = request.pieces(dropped, old_reasoning).iter().map(|(_, tokens)| tokens).sum::<u64>();
            self.record.read_tokens = read + fixed;
            (dropped, say.then_some(Stop::Window))
        };
        if let Some(Fault::Truncate { keep, say }) = fault
            && prompt > *keep
        {
            return Ok(cut(*keep, *say));
        }
        let output = window.counted_output(request);
        if prompt.saturating_add(output) <= tokens {
            return Ok((0, None));
        }
        match window.overflow {
            Overflow::Refuse(dialect) => {
                Err(Excess { window: tokens, prompt, output }.refusal(dialect, request.protocol))
            }
            Overflow::Truncate => Ok(cut(tokens.saturating_sub(output).max(1), false)),
            Overflow::TruncateAndSay => Ok(cut(tokens.saturating_sub(output).max(1), true)),
        }
    }

    fn speak(
        &mut self,
        request: &Request,
        fault: Option<&Fault>,
        summary_mode: Option<Summary>,
        dropped: usize,
        forced: Option<Stop>,
    ) -> Reply {
        let (config, session) = (self.config, self.head.session.as_str());
        let room = self.record.window.saturating_sub(self.record.read_tokens);
        let limit = Some(request.max_output().map_or(room, |most| most.min(room)));
        let mut inner = self.state.lock();
        let mut answer = match summary_mode {
            Some(mode) => inner.progress.summary(config.seed, mode, request),
            None => inner.progress.answer(&config.agent, config.seed, session, request),
        };
        answer = trouble::change(fault, answer).limit(limit);
        if let Some(stop) = forced {
            // Stopped before any call was made.
            answer = Answer::new(answer.reasoning, answer.text, Vec::new(), stop);
        }
        let pieces = request.pieces(dropped, config.counting.old_reasoning);
        let hit = inner.cache.look_up(request.protocol, &request.model, &pieces);
        inner.cache.remember(request.protocol, &request.model, &pieces);
        let true_usage = Usage {
            prompt: self.record.read_tokens,
            cached: hit.read,
            written: hit.written,
            output: answer.output_tokens,
            reasoning: answer.reasoning_tokens,
        };
        let lie = match fault {
            Some(Fault::Usage(lie)) => Some(*lie),
            _ => None,
        };
        let id = inner.progress.id(config.seed, 0);
        let frame = self.frame(request, id, true_usage.told(lie));
        inner.issued.remember(&frame, &answer);
        if forced.is_none() && !fault.is_some_and(Fault::spoils) {
            inner.progress.delivered(session, request, &answer, summary_mode.is_some());
        }
        drop(inner);
        let reply = if request.stream {
            trouble::stream(fault, &frame, frame.stream(&answer))
        } else {
            Reply::json(200, &frame.whole(&answer))
        };
        let reply = trouble::on_the_way(fault, request.stream, reply);
        let reply = match config.frame_bytes.filter(|_| request.stream) {
            Some(size) => reply.cut(size),
            None => reply,
        };
        self.told(&answer, true_usage);
        reply
    }

    /// Writes down what was answered.
    fn told(&mut self, answer: &Answer, usage: Usage) {
        let record = &mut self.record;
        record.verdict = Verdict::Answered;
        record.cached_tokens = usage.cached;
        record.cache_written_tokens = usage.written;
        record.output_tokens = usage.output;
        record.reasoning_tokens = usage.reasoning;
        record.stop = Some(answer.stop);
        record.calls.clone_from(&answer.calls);
        record.text.clone_from(&answer.text);
    }

    fn frame<'f>(&'f self, request: &'f Request, id: String, usage: Option<Usage>) -> Frame<'f> {
        let include = request.field("include").as_array();
        Frame {
            protocol: request.protocol,
            model: &request.model,
            id,
            usage,
            include_usage: request.field("stream_options")["include_usage"] == true,
            reasoning_content: self.config.agent.reasoning_content,
            sealed: include.is_some_and(|list| list.contains(&json!("reasoning.encrypted_content"))),
            signer: self.signer,
            number: self.record.number,
        }
    }
}

fn of(rule: &Rule, is_summary: bool) -> bool {
    match rule.of {
        Of::All => true,
        Of::Summaries => is_summary,
        Of::Turns => !is_summary,
    }
}

fn request_id(number: u64) -> String {
    format!("req_sim{number:06}")
}
