//! What runs: a model, its instructions, its tools, its posture.

use std::sync::Arc;

use crate::context::{Compaction, ContextPolicy};
use crate::provider::{Provider, Settings};
use crate::tool::{Tool, ToolSpec, Tools};

/// An agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) model: String,
    pub(super) system: Option<String>,
    pub(super) tools: Tools,
    pub(super) policy: Arc<dyn ContextPolicy>,
    pub(super) settings: Settings,
    pub(super) max_rounds: u32,
    pub(super) overflow_retries: u32,
    pub(super) shrink_retries: u32,
    pub(super) output_limit: Option<usize>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<String> = self.tools.iter().map(|tool| tool.spec().name).collect();
        f.debug_struct("Agent")
            .field("endpoint", &self.provider.endpoint())
            .field("model", &self.model)
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// An agent with the default policy, [`Compaction`], and no tools of its own.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            system: None,
            tools: Tools::new(),
            policy: Arc::new(Compaction::new()),
            settings: Settings::default(),
            max_rounds: 200,
            overflow_retries: 2,
            shrink_retries: 3,
            output_limit: None,
        }
    }

    /// Its instructions. They may change between runs without touching decisions.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// One more tool.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// The context policy: set once, every run inherits it.
    #[must_use]
    pub fn context_policy(mut self, policy: Arc<dyn ContextPolicy>) -> Self {
        self.policy = policy;
        self
    }

    /// Settings of every call.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Model calls that one run may make. Default 200.
    #[must_use]
    pub const fn max_rounds(mut self, rounds: u32) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Aggressive views tried after a prompt was turned down, for each model call. Default 2: one (the seeds), and one more
    /// because the first may be cut to exactly the room there is, while an estimate right after a pass is a few per cent
    /// off. A try is made
    /// only when the view became smaller than 95 % of the one turned down
    /// ([`RETRY_BELOW_PERCENT`](foreshorten_core::policy::RETRY_BELOW_PERCENT)): less than that is within the error of an
    /// estimate, and would be turned down again. It is also made when the endpoint named a window by which the old view
    /// did not fit and the new one does.
    #[must_use]
    pub const fn overflow_retries(mut self, tries: u32) -> Self {
        self.overflow_retries = tries;
        self
    }

    /// Further tries while the endpoint keeps naming a smaller window than was assumed. Default 3.
    #[must_use]
    pub const fn shrink_retries(mut self, tries: u32) -> Self {
        self.shrink_retries = tries;
        self
    }

    /// Most characters of a tool's output that are recorded; the rest is lost, which the entry says. Default: no limit.
    /// Compaction bounds the view; this bounds the record.
    #[must_use]
    pub const fn tool_output_limit(mut self, chars: usize) -> Self {
        self.output_limit = Some(chars);
        self
    }

    /// Its tools and those that a policy contributes. A tool of the agent's own wins over one of the same name.
    pub(super) fn toolbox(&self, policy: &dyn ContextPolicy) -> (Tools, Vec<ToolSpec>) {
        let mut tools = self.tools.clone();
        let mut specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        for tool in policy.tools() {
            let spec = tool.spec();
            if specs.iter().all(|own| own.name != spec.name) {
                specs.push(spec);
                tools.push(tool);
            }
        }
        (tools, specs)
    }
}
