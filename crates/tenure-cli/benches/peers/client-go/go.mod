module client-go-elector

go 1.26

require (
	k8s.io/apimachinery v0.36.3
	k8s.io/client-go v0.36.3
)
