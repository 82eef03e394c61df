"""Models of requests and answers, and the OpenAPI document that is made from them."""
