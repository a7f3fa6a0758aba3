//! The policy that does nothing.

use async_trait::async_trait;

use super::{CompactionRequest, ContextPolicy, ContextResult, PolicyError};
use crate::view::View;

/// Sends the whole record, for as long as it fits. Contributes no tools.
///
/// ```
/// use foreshorten::context::{ContextPolicy, NoopContextPolicy};
/// assert!(NoopContextPolicy.tools().is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopContextPolicy;

#[async_trait]
impl ContextPolicy for NoopContextPolicy {
    async fn compact(&self, request: CompactionRequest<'_>) -> Result<ContextResult, PolicyError> {
        let window = request.window;
        Ok(ContextResult { window, ..ContextResult::of(View::of(request.record)) })
    }
}
