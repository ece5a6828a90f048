//! The attribute `#[tool]` of the crate `toolgate`.

mod options;
mod parameters;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, ItemFn, Lit, Meta, ReturnType, Type, parse_macro_input};

use self::{options::ToolOptions, parameters::Parameters};

/// Makes a tool of a function; see `toolgate::tool`.
#[proc_macro_attribute]
pub fn tool(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let options = parse_macro_input!(attribute as ToolOptions);
    let function = parse_macro_input!(item as ItemFn);
    expand(&options, function).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(options: &ToolOptions, mut function: ItemFn) -> syn::Result<TokenStream> {
    let signature = &function.sig;
    if let Some(generic) = signature.generics.params.first() {
        let message = "a tool has no type parameters: a model sends concrete values";
        return Err(syn::Error::new_spanned(generic, message));
    }
    let description = match documentation(&function.attrs) {
        text if text.is_empty() => {
            let message = "a tool needs a doc comment: it is what the model reads";
            return Err(syn::Error::new_spanned(&signature.ident, message));
        }
        text => text,
    };
    let ident = signature.ident.clone();
    let name = options.name.clone().unwrap_or_else(|| ident.to_string());
    let visibility = function.vis.clone();
    let Parameters { fields, names, state } = Parameters::take(&mut function.sig)?;
    let setters = &options.setters;
    let is_async = function.sig.asyncness.is_some();
    let awaited = if is_async { quote!(.await) } else { TokenStream::new() };
    let (state_argument, state_clone) = match &state {
        Some(state) => {
            let state = &state.name;
            (quote!(#state,), quote!(let #state = ::core::clone::Clone::clone(&#state);))
        }
        None => (TokenStream::new(), TokenStream::new()),
    };
    // A parameter of the function may have any name but these.
    let call = quote!(Self::call(#state_argument #(__input.#names),*) #awaited);
    let outcome = if returns_result(&function.sig.output) {
        call
    } else {
        quote!(::core::result::Result::<_, ::core::convert::Infallible>::Ok(#call))
    };
    let make = quote! {
        #[derive(::toolgate::__private::Deserialize, ::toolgate::__private::JsonSchema)]
        #[serde(crate = "::toolgate::__private::serde", deny_unknown_fields)]
        #[schemars(crate = "::toolgate::__private::schemars")]
        struct __Input { #(#fields),* }
        ::toolgate::FunctionTool::new(#name, #description, move |__input: __Input| {
            #state_clone
            async move { #outcome }
        })
        #setters
    };
    // Without its state the function is no tool, so that it cannot be forgotten.
    let conversion = if let Some(state) = &state {
        let (state, ty) = (&state.name, &state.ty);
        quote! {
            impl #ident {
                /// The tool, with this state.
                #visibility fn with(self, #state: #ty) -> ::toolgate::FunctionTool { #make }
            }
        }
    } else {
        quote! {
            impl #ident {
                /// The tool, to set more of it.
                #visibility fn tool(self) -> ::toolgate::FunctionTool { #make }
            }

            impl ::core::convert::From<#ident> for ::toolgate::FunctionTool {
                fn from(function: #ident) -> Self { function.tool() }
            }
        }
    };
    let documentation = function.attrs.iter().filter(|it| it.path().is_ident("doc")).cloned();
    let documentation: Vec<Attribute> = documentation.collect();
    function.sig.ident = syn::Ident::new("call", ident.span());
    function.vis = syn::parse_quote!(pub);
    // The type has the name of the function, and the function is the caller's own: neither is a mistake of theirs.
    Ok(quote! {
        #(#documentation)*
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #ident;

        #[allow(dead_code, clippy::unused_async, clippy::unused_self)]
        impl #ident {
            #function
        }

        #conversion
    })
}

/// The text of the doc comments, without the space in front of each line.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

/// Whether the type is written as a `Result`.
fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else { return false };
    let Type::Path(path) = &**ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Result")
}
