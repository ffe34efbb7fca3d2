//! Passes an upgraded connection through: WebSocket and the like, on routes that are not managed.

use crate::observe::request::RequestObserver;
use crate::pipeline::reply_body::ReplyBody;
use crate::reply::upstream_failure::{FailureKind, UpstreamFailure};
use crate::transport::body::Progress;
use crate::transport::framing::ConnectionState;
use crate::transport::headers::{self, SwitchTo};
use crate::transport::response_body::ResponseBody;
use crate::transport::server::Shutdown;
use crate::transport::tunnel::{TunnelEnd, tunnel};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tidegate_config::Upstream;

/// The client's side of a connection that may be upgraded.
#[derive(Debug)]
pub(crate) struct Upgrade(OnUpgrade);

/// A response with which the upstream has switched protocols.
#[derive(Debug)]
pub(crate) struct Switched {
    pub(crate) response: Response<ResponseBody>,
    pub(crate) client: Upgrade,
    pub(crate) upstream: Arc<Upstream>,
}

impl Upgrade {
    /// Takes the client's side if the request asks to switch protocols, and has the request ask the upstream for the same.
    pub(crate) fn requested(request: &mut Request<Incoming>) -> Option<Upgrade> {
        let switch_to = SwitchTo::requested(request.version(), request.headers())?;
        let client = hyper::upgrade::on(&mut *request);
        request.extensions_mut().insert(switch_to);
        Some(Upgrade(client))
    }
}

/// Whether the upstream has switched protocols.
pub(crate) fn is_switched(response: &Response<ResponseBody>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// Answers the client as the upstream did, and then passes bytes both ways until either side closes, both are silent for
/// `idle_timeout`, or the drain time is over.
pub(crate) fn pass_on(
    switched: Switched,
    connection: &ConnectionState,
    shutdown: &Shutdown,
    mut observer: RequestObserver,
) -> Response<ReplyBody> {
    let Switched { response, client, upstream } = switched;
    let (mut head, body) = response.into_parts();
    headers::clean_switching(&mut head.headers);
    observer.upstream_answering(head.status, &head.headers);
    connection.switch_protocols();
    let cut = shutdown.cut.clone();
    drop(shutdown.tasks.spawn(async move {
        let (Ok(client), Some((stream, first))) = (client.0.await, body.into_upgraded()) else { return };
        let (up, down) = (observer.upload.clone(), Progress::start());
        let idle = upstream.idle_timeout;
        let end = tunnel(TokioIo::new(client), stream, first, (&up, &down), idle, &cut).await;
        observer.relayed(usize::try_from(down.bytes()).unwrap_or(usize::MAX));
        let kind = match end {
            TunnelEnd::Closed => return observer.answered(),
            // That is what is reported if nothing else is.
            TunnelEnd::ClientBroke => return,
            TunnelEnd::UpstreamBroke => FailureKind::Broken,
            TunnelEnd::Idle => FailureKind::Idle,
            TunnelEnd::Cut => FailureKind::Draining,
        };
        let failure = UpstreamFailure { upstream: upstream.name.clone(), kind };
        match kind.is_upstreams() {
            true => observer.broke(failure.reason()),
            false => observer.cut(failure.reason()),
        }
    }));
    Response::from_parts(head, ReplyBody::full(Bytes::new()))
}
