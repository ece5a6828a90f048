//! What stands in the parentheses of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Ident, LitInt, LitStr, Token,
    parse::{Parse, ParseStream},
};

/// The options of a tool.
#[derive(Default)]
pub(crate) struct ToolOptions {
    /// Replaces the name of the function.
    pub(crate) name: Option<String>,
    /// The methods of `FunctionTool` that set the others.
    pub(crate) setters: TokenStream,
}

/// The options without a value, which are methods of `FunctionTool`.
const FLAGS: [&str; 5] = ["read_only", "destructive", "idempotent", "deferred", "always_loaded"];

impl Parse for ToolOptions {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let setter = match key.to_string().as_str() {
                "name" => {
                    input.parse::<Token![=]>()?;
                    options.name = Some(input.parse::<LitStr>()?.value());
                    TokenStream::new()
                }
                "title" => {
                    input.parse::<Token![=]>()?;
                    let title: LitStr = input.parse()?;
                    quote!(.title(#title))
                }
                "timeout_seconds" => {
                    input.parse::<Token![=]>()?;
                    let seconds: LitInt = input.parse()?;
                    quote!(.timeout(::core::time::Duration::from_secs(#seconds)))
                }
                flag if FLAGS.contains(&flag) => quote!(.#key()),
                _ => {
                    let known = FLAGS.join("`, `");
                    let message = format!(
                        "the options of a tool are `{known}`, `name = \"…\"`, `title = \"…\"` and \
                         `timeout_seconds = …`"
                    );
                    return Err(syn::Error::new(key.span(), message));
                }
            };
            options.setters.extend(setter);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}
