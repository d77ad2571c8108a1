module tagferry.test/clarify-go

go 1.23

require github.com/clarify/clarify-go v0.4.0

require (
	github.com/golang/protobuf v1.5.3 // indirect
	golang.org/x/oauth2 v0.13.0 // indirect
	google.golang.org/appengine v1.6.8 // indirect
	google.golang.org/protobuf v1.33.0 // indirect
)
