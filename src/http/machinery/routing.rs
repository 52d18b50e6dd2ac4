//! Finds the operation of a request by path and method.
//!
//! Every path of the documents is fixed, so a table is enough. poem's router is for patterns, and each of its layers boxes the rest of
//! the answer once more: for one ticket that took a tenth of the instructions spent here.

use std::{collections::HashMap, sync::Arc};

use poem::{
    Endpoint, EndpointExt, Request, Response,
    endpoint::{BoxEndpoint, DynEndpoint},
    error::MethodNotAllowedError,
    http::Method,
};
use poem_openapi::OpenApi;

/// The path that the contract is served under.
pub const PREFIX: &str = "/v1";

/// The path that the settings plane is served under.
pub const SETTINGS_PREFIX: &str = "/settings/v1";

/// Whether a path belongs to the settings plane, even if nothing is served at it.
pub fn in_settings(path: &str) -> bool {
    path.strip_prefix(SETTINGS_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The operations below the prefixes of the documents, by whole path.
#[derive(Default)]
pub struct Operations(HashMap<String, HashMap<Method, BoxEndpoint<'static>>>);

impl Operations {
    pub fn add(&mut self, api: impl OpenApi) {
        api.add_routes(&mut self.0);
    }

    /// Serves a path that no document lists, with these methods.
    pub fn at(&mut self, path: &str, methods: &[Method], endpoint: impl Endpoint<Output = Response> + 'static) {
        let endpoint = Arc::new(endpoint);
        let served = methods.iter().map(|method| (method.clone(), endpoint.clone().boxed()));
        self.0.entry(path.to_owned()).or_default().extend(served);
    }

    /// The methods that a path accepts, in alphabetical order. Empty: nothing is served at the path.
    pub fn methods(&self, path: &str) -> Vec<&str> {
        let mut methods: Vec<&str> = self.0.get(path).into_iter().flat_map(|methods| methods.keys()).map(Method::as_str).collect();
        methods.sort_unstable();
        methods
    }

    /// The operation of a request. `None`: nothing is served at its path.
    pub fn find(&self, request: &Request) -> Option<Result<&dyn DynEndpoint<Output = Response>, MethodNotAllowedError>> {
        let methods = self.0.get(request.uri().path())?;
        Some(methods.get(request.method()).map(|endpoint| &**endpoint).ok_or(MethodNotAllowedError))
    }
}
