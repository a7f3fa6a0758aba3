//! `foreshorten-simulator`: a provider to try an agent against, without a key and without a network.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use foreshorten_simulator::{Config, Dialect, Fault, Overflow, Protocol, RateWording, RetryAfter, Rule, Simulator};

/// A simulated LLM provider on loopback: counts, caches and refuses as real ones do.
///
/// Point an agent at the URLs it prints. The model behind it is a script: it calls the tools the agent offers with
/// arguments that fit their schemas, and says something now and then. Stops on Ctrl-C and prints what it has seen.
#[derive(Debug, Parser)]
#[command(name = "foreshorten-simulator", version)]
struct Args {
    /// Whose URL to print; all three are served anyway
    #[arg(long, value_enum, default_value_t = Speaks::All)]
    protocol: Speaks,
    /// Context window in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000)]
    window: u64,
    /// Window that the models listing names, if it names one; the enforced one if not given
    #[arg(long, value_name = "TOKENS")]
    announce: Option<u64>,
    /// Field of the models listing that names the window, such as context_length or meta.n_ctx_train
    #[arg(long, value_name = "FIELD")]
    window_field: Option<String>,
    /// TCP port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Seed of everything the model says
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Key that clients must send; any if not given
    #[arg(long)]
    key: Option<String>,
    /// Tool rounds after each user message
    #[arg(long, default_value_t = 8)]
    rounds: u64,
    /// The words of an overflow
    #[arg(long, value_enum, default_value_t = Words::Native)]
    dialect: Words,
    /// Drop the oldest messages of a prompt that is too long, and say nothing
    #[arg(long)]
    truncate: bool,
    /// Repeat call ids in every turn (call_0, call_1, …)
    #[arg(long)]
    repeat_call_ids: bool,
    /// Answer every N-th request with 503
    #[arg(long, value_name = "N")]
    overloaded_every: Option<u64>,
    /// Answer every N-th request with 429 and a retry-after of one second
    #[arg(long, value_name = "N")]
    rate_limit_every: Option<u64>,
    /// End every N-th stream before it is complete
    #[arg(long, value_name = "N")]
    truncated_every: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Speaks {
    Chat,
    Responses,
    Messages,
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Words {
    Native,
    Requested,
    Azure,
    Vllm,
    LlamaCpp,
    Sglang,
    OpenRouter,
    Mistral,
    LmStudio,
    Bedrock,
    Groq,
    Zai,
    NoBody,
}

impl Args {
    fn config(&self) -> Config {
        let mut config = Config { port: self.port, seed: self.seed, key: self.key.clone(), ..Config::default() };
        config.window.tokens = self.window;
        config.window.announced = self.announce;
        config.window.overflow =
            if self.truncate { Overflow::Truncate } else { Overflow::Refuse(self.dialect.dialect()) };
        config.models.window_field.clone_from(&self.window_field);
        config.agent.rounds = self.rounds;
        config.agent.repeat_call_ids = self.repeat_call_ids;
        let limited = Fault::RateLimit { retry_after: RetryAfter::Seconds(1), wording: RateWording::Requests };
        let faults = [
            (self.overloaded_every, Fault::Status(503)),
            (self.rate_limit_every, limited),
            (self.truncated_every, Fault::Truncated),
        ];
        config.faults = faults.into_iter().filter_map(|(n, fault)| Some(Rule::every(n?, fault))).collect();
        config
    }
}

impl Words {
    const fn dialect(self) -> Dialect {
        match self {
            Self::Native => Dialect::Native,
            Self::Requested => Dialect::Requested,
            Self::Azure => Dialect::Azure,
            Self::Vllm => Dialect::Vllm,
            Self::LlamaCpp => Dialect::LlamaCpp,
            Self::Sglang => Dialect::Sglang,
            Self::OpenRouter => Dialect::OpenRouter,
            Self::Mistral => Dialect::Mistral,
            Self::LmStudio => Dialect::LmStudio,
            Self::Bedrock => Dialect::Bedrock,
            Self::Groq => Dialect::Groq,
            Self::Zai => Dialect::Zai,
            Self::NoBody => Dialect::NoBody,
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let simulator = match Simulator::start(args.config()) {
        Ok(simulator) => simulator,
        Err(problem) => {
            eprintln!("foreshorten-simulator: port {}: {problem}", args.port);
            return ExitCode::FAILURE;
        }
    };
    let base = simulator.base_url();
    if args.protocol != Speaks::Messages {
        println!("OPENAI_BASE_URL={base}/v1");
    }
    if matches!(args.protocol, Speaks::Messages | Speaks::All) {
        println!("ANTHROPIC_BASE_URL={base}");
    }
    eprintln!("window {} tokens, seed {}; Ctrl-C stops", args.window, args.seed);
    let interrupted = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(tokio::signal::ctrl_c()));
    if let Err(problem) = interrupted {
        eprintln!("foreshorten-simulator: {problem}");
        return ExitCode::FAILURE;
    }
    report(&simulator);
    ExitCode::SUCCESS
}

/// What was seen, one line a request and the sums.
fn report(simulator: &Simulator) {
    for record in simulator.log() {
        let protocol = match record.protocol {
            Protocol::Chat => "chat",
            Protocol::Responses => "responses",
            Protocol::Messages => "messages",
        };
        let outcome = record.verdict.refused().map_or("", |reason| reason.code());
        println!(
            "{:>5} {protocol:<9} {:>3} {:>9} tokens {:>9} cached {:>6} out {} {outcome}",
            record.number,
            record.status,
            record.prompt_tokens,
            record.cached_tokens,
            record.output_tokens,
            record.fault.unwrap_or(""),
        );
    }
    let stats = simulator.stats();
    println!(
        "{} requests: {} answered, {} overflows, {} other refusals, {} with a misbehaviour; {} prompt tokens, {} of them \
         cached; {} recalls",
        stats.requests,
        stats.answered,
        stats.overflows,
        stats.refusals,
        stats.faults,
        stats.prompt_tokens,
        stats.cached_tokens,
        stats.recalls
    );
}
