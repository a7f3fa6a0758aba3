//! A running simulator.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::config::Config;
use crate::log::{Record, Stats};
use crate::server;
use crate::state::State;

/// A simulated provider, listening until it is dropped.
#[derive(Debug)]
pub struct Simulator {
    state: Arc<State>,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Simulator {
    /// Starts one on 127.0.0.1. Returns when it accepts connections.
    ///
    /// # Errors
    ///
    /// When the port is taken, or there are no threads or sockets to be had.
    pub fn start(config: Config) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("simulator").enable_all().build()?;
        let (listener, address) = {
            let _inside = runtime.enter();
            server::bind(config.port)?
        };
        let state = Arc::new(State::new(config));
        runtime.spawn(server::serve(listener, Arc::clone(&state)));
        Ok(Self { state, address, runtime: Some(runtime) })
    }

    /// Forgets the log, the cache, what was issued, and how far the model was. The configuration stays, and so does
    /// what texts weigh.
    pub fn reset(&self) {
        self.state.reset();
    }

    /// Changes the configuration from the next request on (`port` aside). Nothing is forgotten.
    pub fn update(&self, change: impl FnOnce(&mut Config)) {
        self.state.update(change);
    }

    /// `http://127.0.0.1:PORT`, without a path. Anthropic clients take it as it is, OpenAI clients with `/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every POST request so far, in the order in which they came.
    #[must_use]
    pub fn log(&self) -> Vec<Record> {
        self.state.log()
    }

    /// Sums over the log.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// Tokens of a text, as this simulator counts them before any factor.
    #[must_use]
    pub fn tokens(text: &str) -> u64 {
        crate::count::tokens(text)
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting is not allowed where this may be dropped: inside another runtime.
            runtime.shutdown_background();
        }
    }
}
