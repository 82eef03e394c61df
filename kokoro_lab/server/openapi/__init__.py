"""What may be asked and is answered, as models, and the document that is made from them."""
